"""Job types that are declared in code, with their parameters; apps, in which workers find them."""
