"""The page of the fake Slack in the browser: a channel, its threads, modals and a composer."""
