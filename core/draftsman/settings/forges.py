"""Forges: the services with the remotes of repositories, and the pull requests there."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator

from draftsman.field_errors import matching
from draftsman.settings.outbound import SecretSettings, web_address
from draftsman.settings.tables import Section

ForgeKind = Literal["github", "gitlab", "gitea"]
MergeMethod = Literal["merge", "squash", "rebase"]
PUBLIC_URLS: dict[str, str] = {"github": "https://github.com", "gitlab": "https://gitlab.com"}
"""URL of the public instance of a kind, the default of `url`."""
_Login = Annotated[
    str, matching(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,99}", "must be a login, or ORG/TEAM on GitHub")
]
_Label = Annotated[str, Field(min_length=1, max_length=50)]


class ForgeSettings(Section):
    """A forge, for the repositories whose URL has its host."""

    kind: ForgeKind
    """API of the forge; gitea is also that of Forgejo."""
    url: str = ""
    """URL of the forge; default: that of github.com or gitlab.com."""
    token: SecretSettings | None = None
    """Access token; a GitHub App has none."""
    app_id: str | None = Field(None, min_length=1, max_length=100)
    """Id of a GitHub App, which replaces the token."""
    private_key: SecretSettings | None = None
    """Private key of the GitHub App, in PEM form."""
    installation: int | None = Field(None, ge=1)
    """Id of the installation of the app; default: that of the repository."""
    pull_requests: bool = True
    """Whether published work becomes a pull request."""
    labels: tuple[_Label, ...] = Field((), max_length=20)
    """Labels of each pull request."""
    reviewers: tuple[_Login, ...] = Field((), max_length=15)
    """Logins that are asked for a review of each pull request that is not a draft."""
    merge: Literal["never", "ask"] = "never"
    """Whether people are asked for the merge of a pull request once its checks have passed."""
    merge_method: MergeMethod = "merge"

    @field_validator("url")
    @classmethod
    def _check_url(cls, value: str) -> str:
        return web_address(value).rstrip("/") if value else value

    @field_validator("app_id", mode="before")
    @classmethod
    def _text(cls, value: object) -> object:
        return str(value) if isinstance(value, int) and not isinstance(value, bool) else value

    @model_validator(mode="after")
    def _check_combination(self) -> Self:
        if not self.url:
            if self.kind not in PUBLIC_URLS:
                raise ValueError(f"url is required for the kind {self.kind}")
            object.__setattr__(self, "url", PUBLIC_URLS[self.kind])
        if self.app_id is None:
            if self.token is None:
                raise ValueError("specify token, or app_id and private_key of a GitHub App")
            if self.private_key is not None or self.installation is not None:
                raise ValueError("private_key and installation require app_id")
        elif self.kind != "github":
            raise ValueError("app_id is for the kind github")
        elif self.token is not None or self.private_key is None:
            raise ValueError("app_id requires private_key, and no token")
        return self
