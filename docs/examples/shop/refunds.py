"""A script: submits a refund for each line of a file, and waits for all of them.

python refunds.py orders.csv
"""

import csv
import sys

from shop import refund

with open(sys.argv[1], newline="") as file:
    jobs = [
        refund.with_options(key=f"order-{row['order']}").submit(
            order=int(row["order"]), euros=int(row["euros"])
        )
        for row in csv.DictReader(file)
    ]
for job in jobs:
    print(job.name, job.result())
