"""The gateway: the model API that agents call through the worker, which adds the key."""
