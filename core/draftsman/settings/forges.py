"""Forges: the services with the remotes of repositories, and the pull requests there."""

from __future__ import annotations

from typing import Annotated, Final, Literal, Self

from pydantic import Field, field_validator, model_validator

from draftsman.field_errors import matching
from draftsman.settings.addresses import Listen, address_of, web_address
from draftsman.settings.secret import SecretSettings
from draftsman.settings.section import Section

ForgeKind = Literal["github", "gitlab", "gitea"]
MergeMethod = Literal["merge", "squash", "rebase"]
PUBLIC_URLS: dict[str, str] = {"github": "https://github.com", "gitlab": "https://gitlab.com"}
"""URL of the public instance of a kind, the default of `url`."""
BODY_FIELDS: Final = (
    *("job", "title", "requester", "draft", "request", "changes", "evidence", "decisions"),
    *("cost", "issues"),
)
"""Fields of the template of a pull request."""
_Login = Annotated[
    str, matching(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,99}", "must be a login without @, or ORG/TEAM")
]
_RepoPath = Annotated[
    str,
    matching(
        r"[a-z0-9._-]{1,100}(/[a-z0-9._-]{1,100}){1,20}",
        "must be the path of a repository in lower case, such as acme/pay",
    ),
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
    body: str | None = Field(None, max_length=20_000)
    """Template of the body of pull requests; None: all parts, with their headings."""
    issue_label: _Label | None = None
    """Label of an issue that makes a job of it; None: labels make no jobs."""
    mention: _Login = "draftsman"
    """Login that comments mention for draftsman, as in `@draftsman fix this`."""
    merge: Literal["never", "ask"] = "never"
    """Whether people are asked for the merge of a pull request once its checks have passed."""
    merge_method: MergeMethod = "merge"
    events: Literal["poll", "webhook"] | None = None
    """How comments, reviews and checks of pull requests are received; None: they are not."""
    poll: float = Field(60.0, ge=5, le=3600)
    """Seconds between two reads of the open pull requests, with `events = "poll"`."""
    follow_up_delay: float = Field(30.0, ge=0, le=3600)
    """Seconds without another event before a follow-up starts."""
    delete_branch: bool = False
    """Whether the branch of a pull request is deleted once it is merged or closed."""
    listen: Listen | None = None
    """`host:port` of the HTTP server of webhooks, which several forges may share."""
    health_listen: Listen | None = None
    """`host:port` of `/healthz`, `/readyz` and `/metrics`; `listen` has only `/healthz`."""
    webhook_secret: SecretSettings | None = None
    """Secret of the webhooks of the repositories without their own."""
    webhook_secrets: dict[_RepoPath, SecretSettings] = Field(default_factory=dict)
    """Secrets of the webhooks of single repositories, by path, such as `acme/pay`."""
    webhook_url: str | None = None
    """Public URL of the webhook, which `doctor` looks for."""

    @property
    def address(self) -> tuple[str, int] | None:
        """Host and port of the HTTP server of webhooks, or None."""
        return address_of(self.listen)

    @property
    def health_address(self) -> tuple[str, int] | None:
        """Host and port of the health endpoints, or None."""
        return address_of(self.health_listen)

    @field_validator("webhook_url")
    @classmethod
    def _check_webhook_url(cls, value: str | None) -> str | None:
        return None if value is None else web_address(value)

    @model_validator(mode="after")
    def _check_events(self) -> Self:
        if self.issue_label is not None and self.events is None:
            raise ValueError('issue_label needs events = "poll" or "webhook"')
        has_secret = self.webhook_secret is not None or self.webhook_secrets
        for name, is_set in (("listen", self.listen), ("webhook_secret", has_secret)):
            if self.events == "webhook" and not is_set:
                raise ValueError(f'events = "webhook" needs {name}; or set events = "poll"')
        if self.health_listen is not None and self.events is None:
            raise ValueError('health_listen needs events = "poll" or "webhook"')
        return self

    @field_validator("body")
    @classmethod
    def _check_body(cls, value: str | None) -> str | None:
        if value is None:
            return value
        from draftsman import text_template

        return text_template.check(value, BODY_FIELDS, name="body", default="the default text")

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
