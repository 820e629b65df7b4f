"""The diff viewer of the job screen, of approvals and of questions."""
