"""The network proxy: named hosts that a program without a network reaches through the worker."""
