"""Forges: the services with the remotes of repositories, and the pull requests there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Final, Literal, Self

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    SerializeAsAny,
    field_validator,
    model_validator,
)

from draftsman import plugins
from draftsman.errors import ConfigError
from draftsman.field_errors import matching
from draftsman.settings.addresses import Listen, address_of, web_address
from draftsman.settings.network import check_names
from draftsman.settings.secret import SecretSettings
from draftsman.settings.section import Section

MergeMethod = Literal["merge", "squash", "rebase"]
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

    usable: ClassVar[bool] = True
    """Whether the package of the kind can be loaded."""
    kind: str = Field(examples=["gitlab"])
    """github, gitlab, gitea, which is also Forgejo, or that of another package
    (docs/forges.md#other-forges)."""
    url: str = Field("", examples=["https://gitlab.com"])
    """URL of the forge. Empty: that of the public instance, such as https://github.com or
    https://gitlab.com. An IP address or localhost is allowed."""
    token: SecretSettings | None = Field(None, examples=[{"env": "GITLAB_TOKEN"}])
    """The access token. Unset: a GitHub App."""
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

    @model_validator(mode="after")
    def _check_combination(self) -> Self:
        if not self.url:
            if not self.plugin.public_url:
                raise ValueError(f"url is required for the kind {self.kind}")
            object.__setattr__(self, "url", self.plugin.public_url)
        if self.events == "webhook" and self.plugin.webhooks is None:
            raise ValueError(f'the kind {self.kind} has no webhooks; set events = "poll"')
        self.check_access()
        return self

    def check_access(self) -> None:
        """Raise ValueError if there is no way to authenticate."""
        if self.token is None:
            raise ValueError("token is required")

    @property
    def plugin(self) -> ForgePlugin:
        """What the package of the kind declares; raises ConfigError if it cannot be loaded."""
        return plugins.load(plugins.find(plugins.FORGES, self.kind), ForgePlugin)

    def load_part(self, target: str) -> Any:
        """Import a name of the kind's declaration; raises ConfigError, which names its package."""
        return plugins.load_part(plugins.find(plugins.FORGES, self.kind), target)

    @classmethod
    def of(cls, table: Any) -> ForgeSettings:
        """Return the settings of a table by its kind; raises ValidationError."""
        return cls.for_table(table).model_validate(table)

    @classmethod
    def for_table(cls, table: Any) -> type[ForgeSettings]:
        """Return the model of a table, by its kind."""
        kind = table.get("kind") if isinstance(table, Mapping) else None
        if kind not in plugins.names(plugins.FORGES):
            return ForgeSettings
        try:
            return plugins.load(plugins.find(plugins.FORGES, kind), ForgePlugin).settings
        except ConfigError:
            return UnusableForgeSettings

    @field_validator("kind")
    @classmethod
    def _check_kind(cls, value: str) -> str:
        if value not in plugins.names(plugins.FORGES):
            known = ", ".join(plugins.names(plugins.FORGES))
            raise ValueError(f"no installed package has this kind of forge; known: {known}")
        return value


class UnusableForgeSettings(ForgeSettings):
    """A forge whose package cannot be loaded: each use raises ConfigError, and harms no other."""

    model_config = ConfigDict(extra="ignore")
    usable = False

    @model_validator(mode="after")
    def _check_combination(self) -> Self:
        return self


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgePlugin:
    """A kind of forges: the object of an entry point of `draftsman.forges` with its name.

    Its module must import little, because it is imported with the configuration. What needs more is
    a name, `package.module:attribute`, which is imported when it is used.
    """

    api: str
    """Class of the repositories on a forge, a `Forge` of `draftsman.forges.forge`. It is called
    with the name of the table, its settings, the `HttpSettings` and the `Project`."""
    webhooks: str | None = None
    """Module or object with the functions of `WebhookFormat` in `draftsman.forges.webhooks`. None:
    events are polled only."""
    settings: type[ForgeSettings] = ForgeSettings
    """Model of the table, with the keys that only this kind has."""
    public_url: str = ""
    """URL of the public instance, the default of `url`. Empty: `url` is required."""
    compare_url: Callable[[str, str, str], str]
    """Return the page on which a person opens a pull request, from the URL of the repository, the
    base and the branch."""
    issue_page: str = "issues/{number}"
    """Page of an issue or pull request below the URL of the repository."""
    pull_page: str | None = None
    """Page of a pull request, if pull requests are numbered apart from issues: then
    `forge:NAME/acme/pay!12` is a pull request, and `forge:NAME/acme/pay#12` an issue."""
    comment_anchor: str = "issuecomment-{id}"
    """Fragment of the URL of a comment."""

    @property
    def has_pull_numbers(self) -> bool:
        """Whether pull requests are numbered apart from issues."""
        return self.pull_page is not None

    def page_of(self, number: int, comment: str | None, *, is_pull: bool) -> str:
        """Return the page of an issue or pull request, or of a comment there."""
        page = (self.pull_page if is_pull else None) or self.issue_page
        anchor = f"#{self.comment_anchor.format(id=comment)}" if comment else ""
        return page.format(number=number) + anchor


AnyForge = Annotated[ForgeSettings, SerializeAsAny(), BeforeValidator(ForgeSettings.of)]
"""A table of `[forges]`, of any kind."""


def check_forges(forges: Mapping[str, ForgeSettings]) -> None:
    """Raise ValueError for a name that no URL may contain, or two forges with the same URL."""
    check_names("forges", forges)
    urls: dict[str, str] = {}
    for name, forge in forges.items():
        if forge.url and (other := urls.setdefault(forge.url.casefold(), name)) != name:
            raise ValueError(f"forges.{other} and forges.{name} have the same url: {forge.url}")
