"""The APIs of GitHub, GitLab and Gitea."""
