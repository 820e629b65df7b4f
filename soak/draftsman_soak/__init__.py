"""The soak test: draftsman under load and injected faults on a server of its own."""
