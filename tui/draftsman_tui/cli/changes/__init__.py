"""Commands for the changes of a job: see them, and bring them into a repository of one's own."""
