"""Services: each function is a transaction from a state of the data to the next."""
