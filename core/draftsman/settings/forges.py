"""Forges: the services with the remotes of repositories, and the pull requests there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final, Literal, Self

from pydantic import Field, field_validator, model_validator

from draftsman.field_errors import matching
from draftsman.settings.addresses import Listen, address_of, web_address
from draftsman.settings.network import check_names
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
    """Forges, on which published work becomes a pull request (docs/forges.md).

    A repository belongs to the forge with the host of its URL. Only workers need the secrets; with
    events, also the bots.
    """

    kind: ForgeKind = Field(examples=["gitlab"])
    """github, gitlab or gitea; gitea is also Forgejo."""
    url: str = Field("", examples=["https://gitlab.com"])
    """URL of the forge. Empty: https://github.com or https://gitlab.com, by the kind. An IP address
    or localhost is allowed."""
    token: SecretSettings | None = Field(None, examples=[{"env": "GITLAB_TOKEN"}])
    """The access token. Unset: a GitHub App."""
    app_id: str | None = Field(None, min_length=1, max_length=100, examples=["123456"])
    """Id of a GitHub App, instead of the token. Unset: none."""
    private_key: SecretSettings | None = Field(
        None, examples=[{"file": "/etc/draftsman/github-app.pem"}]
    )
    """Private key of the app, as GitHub made it. Unset: none."""
    installation: int | None = Field(None, ge=1, examples=[7654321])
    """Id of the installation of the app. Unset: that of the repository."""
    pull_requests: bool = True
    """Whether published branches become pull requests."""
    labels: tuple[_Label, ...] = Field((), max_length=20, examples=[["draftsman"]])
    """Labels of each pull request."""
    reviewers: tuple[_Login, ...] = Field((), max_length=15, examples=[["anna"]])
    """Logins that are asked for a review, except of drafts; on GitHub also ORG/TEAM."""
    body: str | None = Field(
        None,
        max_length=20_000,
        examples=["{draft}\n\n{request}\n\n{changes}\n\n{evidence}\n\n{issues}"],
    )
    """Template of the body of pull requests, of the fields job, title, requester, draft, request,
    changes, evidence, decisions, cost and issues. Unset: all parts."""
    issue_label: _Label | None = Field(None, examples=["draftsman"])
    """Label of an issue that makes a job of it. Unset: labels make no jobs."""
    mention: _Login = "draftsman"
    """Login that comments mention, as in "@draftsman fix this"."""
    merge: Literal["never", "ask"] = "never"
    """never: pull requests are merged by people only. ask: an approval is asked for once the checks
    have passed. draftsman merge asks in both cases."""
    merge_method: MergeMethod = "merge"
    """merge, squash or rebase; on GitLab rebase is a setting of the project."""
    events: Literal["poll", "webhook"] | None = Field(None, examples=["poll"])
    """How comments, reviews and checks of pull requests are received (docs/follow-ups.md): poll or
    webhook. Unset: they are not."""
    poll: float = Field(60.0, ge=5, le=3600)
    """Seconds between two reads of the open pull requests, with events = "poll"."""
    follow_up_delay: float = Field(30.0, ge=0, le=3600)
    """Seconds without another event before a follow-up starts: comments of a review are a single
    follow-up."""
    delete_branch: bool = False
    """Whether the branch of a pull request is deleted once it is merged or closed."""
    listen: Listen | None = Field(None, examples=["127.0.0.1:3002"])
    """host:port of the HTTP server of webhooks, which several forges may share: /forges/NAME.
    Unset: no webhooks, which need it."""
    health_listen: Listen | None = Field(None, examples=["127.0.0.1:9403"])
    """host:port of its own for /healthz, /readyz and /metrics; listen has only /healthz. Unset:
    none."""
    webhook_secret: SecretSettings | None = Field(None, examples=[{"env": "GITLAB_WEBHOOK_SECRET"}])
    """Secret of the webhook. Unset: no webhooks, which need it."""
    webhook_secrets: dict[_RepoPath, SecretSettings] = Field(
        default_factory=dict, examples=[{"acme/pay": {"env": "PAY_WEBHOOK_SECRET"}}]
    )
    """Secrets of the webhooks of single repositories, by path in lower case, instead of
    `webhook_secret`."""
    webhook_url: str | None = Field(None, examples=["https://bots.example.org/forges/gitlab"])
    """Public URL of the webhook, which draftsman doctor looks for. Unset: it does not look."""

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


def check_forges(forges: Mapping[str, ForgeSettings]) -> None:
    """Raise ValueError for a name that no URL may contain, or two forges with the same URL."""
    check_names("forges", forges)
    urls: dict[str, str] = {}
    for name, forge in forges.items():
        if (other := urls.setdefault(forge.url.casefold(), name)) != name:
            raise ValueError(f"forges.{other} and forges.{name} have the same url: {forge.url}")
