"""The web inbox: questions, jobs and logs as pages for browsers, made for phones."""
