"""The channels of a worker, which needs no bot for them."""
