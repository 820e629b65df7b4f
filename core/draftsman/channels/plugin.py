"""The declaration of a channel, which its package has as an entry point of `draftsman.channels`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetSyntax:
    """How people write the targets of a channel: its name, a colon and an address."""

    form: str
    """For error messages: `mail:ADDRESS`."""
    parse: Callable[[str], tuple[str, str | None]]
    """Returns the target and the thread of an address; raises ValueError, which says what to
    use."""
    only_critical: bool = False
    """Whether it is for critical questions: only ladders have such targets."""
    page: Callable[[Any, str, str | None], str | None] = lambda _settings, _target, _ref: None
    """URL of a message by the `Settings`, its target and its reference, if it has any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelFacts:
    """What draftsman asks about a channel: its row of `draftsman.channels`."""

    accounts: Literal["account", "person"] | None = None
    """How an id there names its person: an account of the directory, or the person's own name.
    None: nobody acts there."""
    has_bot: bool = False
    """Whether its people act by the database role of bots."""
    is_chat: bool = False
    """Whether people talk there all the time: its messages show each step of a run, and people are
    reached there first."""
    takes_answers: bool = False
    """Whether people answer where its messages are, which are edited and have files."""
    has_alerts: bool = False
    """Whether a question there is an alert, which is edited only when the question closes."""
    is_evidence: bool = False
    """Whether a decision there is a person's own, and counts for a permission rule."""
    changes_rules: bool = False
    """Whether its bot lets operators decide on permission rules."""
    shows_changes: bool = False
    """Whether its messages are beside the pull request, whose patch is then no file of theirs."""
    binds_accounts: bool = False
    """Whether the name of an account can be taken by another, so that the first which acts under
    the name of a person is remembered, and others are refused."""
    person_target: str | None = None
    """Regular expression of the part of an account that is the target of its person. None: its
    targets are no people."""
    serves_targets: bool = False
    """Whether a worker sends only to the targets in its configuration."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelQuestions:
    """What `draftsman init` asks about a channel, and writes into its table."""

    comment: str
    """The comment on the table."""
    secrets: Mapping[str, str]
    """The keys of the table that are secrets, and the usual names of their variables."""
    account: str
    """What people call their id, and where they find it: `fax number (on the label)`."""
    account_form: str
    """Regular expression of the whole id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelCommand:
    """A command of the command line, which a channel adds: `draftsman NAME`."""

    name: str
    summary: str
    """For `draftsman --help`."""
    target: str
    """The `click.Command`, whose object is the `App` of `draftsman_tui.cli.app`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelPlugin:
    """What draftsman knows of a channel.

    Its module must import little, as each command that meets the channel imports it. What needs
    more is a name, `package.module:attribute`, which is imported when it is used.
    """

    name: str
    """The name of the entry point, in targets, and of the accounts of people."""
    label: str
    """What people call it: `E-mail`."""
    table: str = ""
    """Its table in the configuration; by default `name`."""
    docs: str = ""
    """Where its configuration is explained: `draftsman help --page mail`, or a URL."""
    settings: str | None = None
    """Its `ChannelSection`, the table in the configuration, or its `NamedSection`, tables whose
    names are the targets. None: it has no table of its own."""
    account: str | None = None
    """A `Section` whose single field, of the name of the channel, is the account of a person in
    `[people.NAME]`: text, or `Several` where a person may have several, the first of which gets
    the messages. None: it has no accounts."""
    questions: ChannelQuestions | None = None
    """What `draftsman init` asks. None: nothing, and people edit the configuration."""
    target: TargetSyntax | None = None
    """How its targets are written. None: messages have no targets there."""
    takes_files: bool = False
    """Whether its bot downloads the files of requests."""
    missing: Callable[[Any, str | None], str | None] | None = None
    """What to add to the `Settings` for the channel, or for a target of it; None if it works. By
    default its table."""
    facts: ChannelFacts = ChannelFacts()
    """What code and statements of the database ask about it."""
    migrations: str | None = None
    """Package with the SQL of its tables, as numbered files and `functions/`, as in the folder
    `migrations` of draftsman: `draftsman_mail.migrations`. None: it has no tables."""
    sentences: str | None = None
    """Module with `SENTENCES`, the sentences of the refusals of its tables, whose rules begin with
    the name of the channel: `mail.box_kept`."""
    shared_digests: str | None = None
    """Coroutine function of a connection and of jobs, which returns by job the target that has the
    digests of its questions, for people with an account there."""
    bot: str | None = None
    """Function of the `Runtime` that returns the `Component` of `draftsman bots`, and raises
    ConfigError. None: the channel has no bot."""
    worker_channel: str | None = None
    """Function of the `Settings` that returns the `Channel` with which a worker sends its messages.
    None: only a bot sends them."""
    bot_label: str = ""
    """What people call the bot; by default `<label> bot`."""
    doctor: str | None = None
    """Function of the `Settings` and the `Runtime` that returns an asynchronous iterator of
    `draftsman_bots.process.checks.Check`, for `draftsman doctor`. The runtime is None while the
    database cannot be reached. None: nothing is checked."""
    live_checks: str | None = None
    """Name of its `LiveChecks` (`draftsman.deliveries.channels.live_check`), which try on the real
    service what the channel assumes of it, for `draftsman doctor --live`. None: there are none."""
    live_names: Callable[[Any], Sequence[str]] | None = None
    """Returns the names of its services after `--live`, by the `Settings`. By default its own name,
    once it is configured."""
    commands: tuple[ChannelCommand, ...] = ()
    """Its commands; one with the name of another command is ignored."""
    statement_timeout: float | None = None
    """Maximum seconds of a statement of the process with the bot, whose callers wait no longer."""
    requires: tuple[str, ...] = ()
    """Top-level modules of the package's extra of the same name as the table."""

    def __post_init__(self) -> None:
        for field, default in (("table", self.name), ("bot_label", f"{self.label} bot")):
            if not getattr(self, field):
                object.__setattr__(self, field, default)

    def services(self, settings: Any) -> Sequence[str]:
        """Return the names of its configured services that have live checks."""
        if self.live_checks is None:
            return ()
        if self.live_names is not None:
            return self.live_names(settings)
        return (self.name,) if self.setup(settings) is None else ()

    def setup(self, settings: Any, target: str | None = None) -> str | None:
        """Return what to add to the `Settings` for the channel or a target; None: nothing."""
        if self.missing is not None:
            return self.missing(settings, target)
        if getattr(settings, self.table, None):
            return None
        return f"[{self.table}] ({self.docs})" if self.docs else f"[{self.table}]"
