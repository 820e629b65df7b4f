"""Runs an example of docs/coming-from.md with its library: `python -m … LIBRARY < CODE`.

What the examples call of the reader's own programs has stand-ins. Brokers are in memory; Temporal,
which has no such server, is a client whose calls are checked by their signatures.
"""

from __future__ import annotations

import ast
import asyncio
import inspect
import sys
from types import ModuleType
from typing import Final

READER: Final = """
import asyncio
from datetime import UTC, datetime, timedelta

send = charge = write_report = save_question = ship = save_count = save_total = print
fetch, all_counted, urls, batch = str, bool, ["a", "bb"], 1


def counts_of(batch):
    return [1, 2]
"""
"""The functions and values of the reader, and the standard library."""
LIBRARIES: Final = {
    "Celery": """
from celery import Celery, chord
from celery.schedules import crontab

app = Celery("tasks", broker="memory://", backend="cache+memory://")
app.conf.task_always_eager = True
""",
    "procrastinate": """
from procrastinate import App, RetryStrategy
from procrastinate.testing import InMemoryConnector

app = App(connector=InMemoryConnector())
app.open()
""",
    "RQ": """
from fakeredis import FakeRedis as Redis
from rq import Queue, Retry, cron, get_current_job

queue = Queue(connection=Redis())
""",
    "APScheduler": """
from apscheduler.schedulers.background import BackgroundScheduler

scheduler = BackgroundScheduler(timezone="UTC")
""",
    "Temporal": """
from unittest.mock import create_autospec

from temporalio import activity, workflow
from temporalio.client import Client, Schedule, ScheduleActionStartWorkflow, ScheduleSpec
from temporalio.common import RetryPolicy

client = create_autospec(Client, instance=True)


@workflow.defn
class Report:
    @workflow.run
    async def run(self) -> None: ...


@activity.defn
def ask(order: int) -> None: ...
""",
}
WORKERS: Final = {
    "procrastinate": """
app.run_worker(wait=False)
assert not [job for job in app.connector.jobs.values() if job["status"] == "failed"]
""",
    "RQ": """
from rq import SimpleWorker

SimpleWorker([queue], connection=queue.connection).work(burst=True)
assert queue.failed_job_registry.get_job_ids() == []
""",
}
"""What runs the submitted jobs, where they did not run at once."""


def main() -> None:
    """Run the example as a module, in which a library can find its functions."""
    module = sys.modules["tasks"] = ModuleType("tasks")
    library = sys.argv[1]
    source = READER + LIBRARIES[library] + sys.stdin.read() + WORKERS.get(library, "")
    code = compile(source, "tasks.py", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    result = eval(code, vars(module))
    if inspect.iscoroutine(result):
        asyncio.run(result)


if __name__ == "__main__":
    main()
