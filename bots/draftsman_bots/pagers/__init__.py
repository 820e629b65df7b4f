"""The receiver of the webhooks of pagers."""
