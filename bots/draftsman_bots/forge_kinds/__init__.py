"""The kinds of forges of draftsman: GitHub, GitLab and Gitea."""
