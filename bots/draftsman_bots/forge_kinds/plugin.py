"""The kinds of forges of draftsman, as entry points of `draftsman.forges`."""

from __future__ import annotations

from typing import Final
from urllib.parse import quote

from pydantic import Field, field_validator

from draftsman.settings.forges import ForgePlugin, ForgeSettings
from draftsman.settings.secret import SecretSettings


class GitHubSettings(ForgeSettings):
    """A GitHub, with an access token or a GitHub App."""

    app_id: str | None = Field(None, min_length=1, max_length=100, examples=["123456"])
    """Id of a GitHub App, instead of the token. Unset: none."""
    private_key: SecretSettings | None = Field(
        None, examples=[{"file": "/etc/draftsman/github-app.pem"}]
    )
    """Private key of the app, as GitHub made it. Unset: none."""
    installation: int | None = Field(None, ge=1, examples=[7654321])
    """Id of the installation of the app. Unset: that of the repository."""

    @field_validator("app_id", mode="before")
    @classmethod
    def _text(cls, value: object) -> object:
        return str(value) if isinstance(value, int) and not isinstance(value, bool) else value

    def check_access(self) -> None:
        if self.app_id is None:
            if self.token is None:
                raise ValueError("specify token, or app_id and private_key of a GitHub App")
            if self.private_key is not None or self.installation is not None:
                raise ValueError("private_key and installation require app_id")
        elif self.token is not None or self.private_key is None:
            raise ValueError("app_id requires private_key, and no token")


def _compare_url(repository: str, base: str, branch: str) -> str:
    return f"{repository}/compare/{quote(base)}...{quote(branch)}"


def _merge_request_url(repository: str, base: str, branch: str) -> str:
    source = quote(branch, safe="")
    return f"{repository}/-/merge_requests/new?merge_request%5Bsource_branch%5D={source}"


GITHUB: Final = ForgePlugin(
    api="draftsman_bots.forge_kinds.github:GitHub",
    webhooks="draftsman_bots.forge_kinds.github_events",
    settings=GitHubSettings,
    public_url="https://github.com",
    compare_url=_compare_url,
)
GITLAB: Final = ForgePlugin(
    api="draftsman_bots.forge_kinds.gitlab:GitLab",
    webhooks="draftsman_bots.forge_kinds.gitlab_events",
    public_url="https://gitlab.com",
    compare_url=_merge_request_url,
    issue_page="-/issues/{number}",
    pull_page="-/merge_requests/{number}",
    comment_anchor="note_{id}",
)
GITEA: Final = ForgePlugin(
    api="draftsman_bots.forge_kinds.gitea:Gitea",
    webhooks="draftsman_bots.forge_kinds.gitea_events",
    compare_url=_compare_url,
)
