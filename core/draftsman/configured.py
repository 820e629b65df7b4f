"""The configured people, limits and targets, and the configured or embedded database."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final
from zoneinfo import ZoneInfo

from draftsman.database import migrate
from draftsman.errors import ConfigError, DraftsmanError, SchemaOutdated, UsageError
from draftsman.jobs.job import Source
from draftsman.people import hours as quiet_hours
from draftsman.people.directory import Directory, DirectoryEntry
from draftsman.people.policy import Person, Policy

if TYPE_CHECKING:
    from draftsman.attention.service.acknowledgments import Acknowledgments
    from draftsman.attention.service.digests import Digests
    from draftsman.attention.service.ladders import LadderChoices, LadderSweep
    from draftsman.attention.service.oncall import OnCall
    from draftsman.attention.service.question_figures import QuestionFigures
    from draftsman.attention.service.reminders import Reminders
    from draftsman.database.database import Database
    from draftsman.database.embedded import EmbeddedServer
    from draftsman.deliveries.channel import Channel
    from draftsman.deliveries.service.outbox import Outbox
    from draftsman.deliveries.target import Target, Targets
    from draftsman.jobs.requests.service.request_checks import RequestChecks
    from draftsman.jobs.requests.service.submissions import Submissions
    from draftsman.jobs.runs.job_limits import JobLimits
    from draftsman.jobs.runs.service.settlement import Settlement
    from draftsman.people.hours import Holidays, InterruptibleHours, QuietHours
    from draftsman.people.service.people import People
    from draftsman.questions.permission_rules.service import PermissionRules
    from draftsman.questions.service.questions import Questions
    from draftsman.queues.service.type_sweep import TypeSweep
    from draftsman.schedules.service.firing import Firing
    from draftsman.schedules.service.templates import Templates
    from draftsman.settings import Settings

PEOPLE_REFRESH: Final = 15.0
"""Seconds after which a long-running process reloads people."""


def directory(settings: Settings) -> Directory:
    """Return the people and groups of the configuration."""
    people = {}
    for name, person in settings.people.items():
        accounts = {"cli": person.login, "slack": person.slack, "trello": person.trello}
        ids = {channel: id for channel, id in accounts.items() if id}
        ids |= {"forge": person.forge.lower()} if person.forge else {}
        people[name] = DirectoryEntry(
            frozenset(person.roles),
            ids,
            person.quiet_hours,
            person.timezone,
            person.working_hours,
            person.holidays,
            tuple(id.lower() for id in person.pager),
        )
    groups = {name: tuple(members) for name, members in settings.groups.items()}
    return Directory(people, groups, settings.questions.self_approval)


def policy(settings: Settings, stored: Directory | None = None) -> Policy:
    """Return the policy of a stored directory, else of the configuration."""
    source = stored or directory(settings)
    people = {}
    for name, entry in source.people.items():
        ids = {Source(channel): id for channel, id in entry.ids.items()} | {Source.WEB: name}
        if Source.CLI in ids:
            ids[Source.TUI] = ids[Source.API] = ids[Source.CLI]
        hours = person_hours(settings, entry)
        people[name] = Person(name, entry.roles, ids, hours, frozenset(entry.pagers))
    return Policy(people, source.groups, source.self_approval)


def person_hours(settings: Settings, entry: DirectoryEntry) -> InterruptibleHours | None:
    """Return when a person may be interrupted, by default as in `[questions]`; None: always."""
    defaults = settings.questions
    timezone = entry.timezone or defaults.timezone
    quiet = quiet_hours.parse(entry.quiet_hours or defaults.quiet_hours, timezone)
    working = entry.working_hours or defaults.working_hours or quiet_hours.NONE
    days = entry.holidays or defaults.holidays or quiet_hours.NONE
    if working == days == quiet_hours.NONE:
        return quiet
    from draftsman.people.hours import PersonHours, parse_working_hours

    shifts = () if working == quiet_hours.NONE else parse_working_hours(working)
    return PersonHours(quiet, shifts, _holidays(settings, days), ZoneInfo(timezone))


def _holidays(settings: Settings, name: str) -> Holidays | None:
    """Return the holidays of a table; None if this process has no such table."""
    from draftsman.attention.calendars.holiday_calendar import holidays_of
    from draftsman.people.hours import Holidays

    if name == quiet_hours.NONE or (table := settings.holidays.get(name)) is None:
        return None
    if table.file is None:
        return Holidays(name, frozenset(table.dates))
    return Holidays(name, frozenset(table.dates), str(table.file), holidays_of(table.file))


def session_url(settings: Settings, url: str) -> str:
    """Return the URL of the server itself, if `url` is that of a transaction pooler."""
    if settings.database_url is None or settings.listen_url is None:
        return url
    return settings.listen_url.get_secret_value()


def worker_channels(settings: Settings) -> list[Channel]:
    """Return the channels of a worker: log, webhook and pager."""
    from draftsman.deliveries.channels.log_channel import LogChannel
    from draftsman.deliveries.channels.pager_channel import PagerChannel
    from draftsman.deliveries.channels.webhook_channel import WebhookChannel

    sent = settings.notifications
    log = LogChannel(sent.log_file or settings.data_dir / "notifications.jsonl")
    webhooks = WebhookChannel(settings.webhooks, settings.http, sent.timeout)
    return [log, webhooks, PagerChannel(settings.pagers, settings.http, sent.timeout)]


def target_names(channels: Sequence[Channel]) -> list[str]:
    """Return the targets that these channels can send to: `log`, `webhook:team`."""
    names = []
    for channel in channels:
        served = channel.served()
        if served is None:
            names.append(str(channel.name))
        else:
            names += [f"{channel.name}:{target}" for target in served]
    return names


async def stored_directory(
    people: People, settings: Settings, *, import_people: bool
) -> Directory | None:
    """Return the people of the database, or None if it has none.

    With `import_people` the configured people replace them.
    """
    try:
        stored = await people.directory()
        defined = directory(settings)
        if import_people and defined and stored.changes(defined):
            await people.save(defined)
            stored = defined
    except SchemaOutdated:  # commands that need the new schema report it themselves
        return None
    return stored or None


async def refresh_people(people: People, settings: Settings, used: Policy) -> None:
    """Reload people periodically, until canceled."""
    while True:
        await asyncio.sleep(PEOPLE_REFRESH)
        with contextlib.suppress(DraftsmanError):
            stored = await stored_directory(people, settings, import_people=False)
            if (current := policy(settings, stored)) != used:
                used.update_from(current)


def configured_limits(settings: Settings) -> JobLimits:
    """Return the limits of job types, agents and tools; the configuration overrides built-ins."""
    from draftsman.jobs.retries import BUILT_IN, RetryPolicy
    from draftsman.jobs.runs.job_limits import JobLimits, with_limit_changes

    types = dict(BUILT_IN)
    for name, section in settings.types.items():
        types[name] = with_limit_changes(types.get(name, RetryPolicy()), section.limits())
    return JobLimits(
        types,
        {name: agent.limits() for name, agent in settings.agents.items()},
        {name: tool.limits() for name, tool in settings.tools.items()},
        settings.handlers.keys() & BUILT_IN.keys(),
        {
            name: section.concurrency_key
            for name, section in settings.types.items()
            if section.concurrency_key is not None
        },
        {name: section.key_paths for name, section in settings.types.items() if section.key_paths},
    )


def configured_targets(settings: Settings) -> tuple[Targets, Target | None]:
    """Return the configured notification targets and the fallback; raises ConfigError."""
    from draftsman.deliveries.target import NONE, Targets, parse

    notifications = settings.notifications
    try:
        default = tuple(parse(text) for text in notifications.targets)
        fallback = None if notifications.fallback == NONE else parse(notifications.fallback)
        known = Targets(default, {name: hook.on for name, hook in settings.webhooks.items()})
        for target in (*default, *([fallback] if fallback else ())):
            known.check(target)
    except UsageError as error:
        raise ConfigError(f"notifications: {error}") from None
    return known, fallback


def rules_target(settings: Settings) -> Target | None:
    """Return the target of messages about proposed rules; raises ConfigError."""
    from draftsman.deliveries.target import parse

    if settings.rules.notify is None:
        return None
    try:
        target = parse(settings.rules.notify)
        configured_targets(settings)[0].check(target)
    except UsageError as error:
        raise ConfigError(f"rules: notify: {error}") from None
    return target


def default_quiet_hours(settings: Settings) -> QuietHours | None:
    """Return the quiet hours of questions without known respondents."""
    return quiet_hours.parse(settings.questions.quiet_hours, settings.questions.timezone)


def reminders(settings: Settings, db: Database, policy: Policy) -> Reminders:
    """Return the service that sends reminders."""
    from draftsman.attention.service.reminders import Reminders

    return Reminders(db, policy, default_quiet_hours(settings), settings.sweeps.limit)


def ladder_choices(settings: Settings) -> LadderChoices:
    """Return the configured ladders, which are read when a question is asked."""
    from draftsman.attention.service.ladders import LadderChoices

    return LadderChoices(lambda: settings.ladders, lambda: settings.questions.ladders)


def oncall(settings: Settings, policy: Policy) -> OnCall:
    """Return the on-call schedules."""
    from draftsman.attention.service.oncall import OnCall

    timezone = settings.questions.timezone
    return OnCall(lambda: settings.oncall, policy, timezone, lambda: settings.http)


def ladder_sweep(settings: Settings, db: Database, policy: Policy) -> LadderSweep:
    """Return the service that takes the steps of ladders."""
    from draftsman.attention.service.ladders import LadderSweep

    return LadderSweep(db, policy, oncall(settings, policy), settings.sweeps.limit)


def firing(
    settings: Settings,
    db: Database,
    policy: Policy,
    templates: Templates,
    checks: RequestChecks,
    submissions: Submissions,
) -> Firing:
    """Return the service that submits the jobs of schedules."""
    from draftsman.schedules.service.firing import Firing

    return Firing(db, policy, settings, templates, checks, submissions)


def type_sweep(settings: Settings, db: Database, settlement: Settlement) -> TypeSweep:
    """Return the sweep for types without a worker."""
    from draftsman.queues.service.type_sweep import TypeSweep

    failing = [name for name, type in settings.types.items() if type.unhandled == "fail"]
    return TypeSweep(db, settlement, settings.worker.lease, failing)


def sweep_rules(
    settings: Settings,
) -> tuple[Sequence[dict[str, Any]], Sequence[dict[str, Any]], str]:
    """Return the limits, the budgets and the time zone of their days."""
    return settings.limits.rules(), settings.budgets.rules(), settings.budgets.timezone


async def database_url(settings: Settings, *, migrations: bool = True) -> tuple[str, bool]:
    """Return the database's URL and whether it is embedded; start the embedded server.

    The embedded database is migrated automatically, a server never.
    """
    if settings.database_url is not None:
        return settings.database_url.get_secret_value(), False
    url = await server(settings).start()
    if migrations:
        await migrate.migrate(url)
    return url, True


def server(settings: Settings) -> EmbeddedServer:
    """Return the embedded server of the configuration."""
    from draftsman.database.embedded import EmbeddedServer

    return EmbeddedServer(settings.data_dir, settings.embedded.idle_timeout)


class AttentionServices:
    """Services for the time of people, as a part of `Runtime`."""

    if TYPE_CHECKING:
        settings: Settings
        db: Database
        policy: Policy

        @property
        def questions(self) -> Questions:
            """Questions and answers."""

        @property
        def outbox(self) -> Outbox:
            """Queries and redelivery of messages."""

    @cached_property
    def acknowledgments(self) -> Acknowledgments:
        """Acknowledgments and snoozes of questions."""
        from draftsman.attention.service.acknowledgments import Acknowledgments

        return Acknowledgments(self.db, self.policy, self.questions)

    @cached_property
    def figures(self) -> QuestionFigures:
        """Views of questions, and figures of people's time."""
        from draftsman.attention.service.question_figures import QuestionFigures

        return QuestionFigures(self.db, self.policy, default_quiet_hours(self.settings))

    @cached_property
    def digests(self) -> Digests:
        """Digests of questions."""
        from draftsman.attention.service.digests import Digests

        used = self.settings.questions.timezone, self.settings.sweeps.limit
        return Digests(self.db, self.policy, *used)

    @cached_property
    def rules(self) -> PermissionRules:
        """Permission rules."""
        from draftsman.questions.permission_rules.service import PermissionRules

        settings = self.settings.rules
        target = rules_target(self.settings)
        announce = None if target is None else partial(self.outbox.announce_rule, target)
        return PermissionRules(
            self.db, self.policy, settings.propose_after, settings.expires_in, announce
        )
