"""The arrows: each function is one transaction from one state of the data to the next."""
