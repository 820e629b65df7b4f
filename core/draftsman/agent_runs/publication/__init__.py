"""Publication of the work of a job: its branch, and the pull request on the forge."""
