"""Commands about jobs: submit, list, show, follow, retry, cancel and deliveries."""
