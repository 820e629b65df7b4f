"""Runtime: the services that a front end uses.

Modules that only a worker or the embedded server needs are imported on first use: without them a
command starts in half the time.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import pwd
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final
from uuid import UUID

from draftsman import migrate, version
from draftsman.domain import job_payloads
from draftsman.domain.ids import new_id
from draftsman.domain.job import Source
from draftsman.domain.messages.target import NONE, Target, Targets, parse
from draftsman.domain.people import quiet_hours
from draftsman.domain.people.actor import Actor
from draftsman.domain.people.directory import Directory, DirectoryEntry
from draftsman.domain.people.policy import Person, Policy
from draftsman.domain.retries.job_limits import JobLimits, with_limit_changes
from draftsman.domain.retries.retry_policy import BUILT_IN, RetryPolicy
from draftsman.errors import ConfigError, DraftsmanError, SchemaOutdated, UsageError
from draftsman.schemas.checker import SchemaChecker
from draftsman.services.deliveries.delivery_sender import DeliverySender
from draftsman.services.deliveries.outbox import Outbox
from draftsman.services.jobs.bulk_retry import BulkRetry
from draftsman.services.jobs.job_control import JobControl
from draftsman.services.jobs.read_model import ReadModel
from draftsman.services.jobs.submissions import Submissions
from draftsman.services.maintenance.archives import Archives
from draftsman.services.maintenance.reminders import Reminders
from draftsman.services.maintenance.sweeps import Sweeps
from draftsman.services.people import People
from draftsman.services.questions import Questions
from draftsman.services.repos import Repos
from draftsman.services.runs.checkpoints import Checkpoints
from draftsman.services.runs.claim import Claim
from draftsman.services.runs.settlement import Settlement
from draftsman.services.threads import Threads
from draftsman.services.trello_boards import TrelloBoards
from draftsman.settings import Settings
from draftsman.store.postgres.database import Database

if TYPE_CHECKING:
    from draftsman.embedded import EmbeddedServer
    from draftsman.handlers.registry import Handler
    from draftsman.loops.delivery_dispatcher import DeliveryDispatcher
    from draftsman.loops.delivery_process import DeliveryProcess
    from draftsman.loops.notification_listener import NotificationListener
    from draftsman.loops.worker_process import WorkerProcess
    from draftsman.ports import Channel


PEOPLE_REFRESH: Final = 15.0
"""Interval at which a long-running process reloads people, in seconds."""


@dataclass(frozen=True, slots=True)
class Runtime:
    """The services over a database."""

    settings: Settings
    db: Database
    embedded: bool
    policy: Policy
    limits: JobLimits
    submissions: Submissions
    questions: Questions
    job_control: JobControl
    read_model: ReadModel
    checkpoints: Checkpoints
    settle: Settlement
    sweeps: Sweeps
    archives: Archives
    bulk_retry: BulkRetry
    outbox: Outbox
    delivery_sender: DeliverySender
    threads: Threads
    people: People
    boards: TrelloBoards
    repos: Repos
    schemas: SchemaChecker = field(default_factory=SchemaChecker)

    def claim(self, worker: UUID, queues: Sequence[str]) -> Claim:
        """Return the claims of a worker."""
        return Claim(self.db, worker, queues)

    def worker_process(
        self,
        handlers: Mapping[str, Handler],
        *,
        queues: Sequence[str] | None = None,
        slots: int | None = None,
        leader: bool = True,
    ) -> WorkerProcess:
        """Return a worker process with its loops."""
        from draftsman.loops.execution import WorkerServices
        from draftsman.loops.worker_process import WorkerProcess

        worker, own_queues = new_id(), queues or self.settings.worker.queues
        services = WorkerServices(
            self.settings,
            self.limits,
            self.claim(worker, own_queues),
            self.checkpoints,
            self.questions,
            self.settle,
            self.outbox,
            self.repos,
            revive=self.revive if self.embedded else None,
            schemas=self.schemas,
        )
        return WorkerProcess(
            worker,
            services,
            self.db,
            handlers,
            version=version.installed(),
            queues=own_queues,
            slots=slots or self.settings.worker.slots,
            sweeps=self.sweeps if leader else None,
            dispatcher=partial(self.dispatcher, self.channels()),
        )

    def channels(self) -> list[Channel]:
        """Return the channels that a worker serves: the log and the webhooks."""
        from draftsman.channels.log_channel import LogChannel
        from draftsman.channels.webhook_channel import WebhookChannel

        notifications = self.settings.notifications
        return [
            LogChannel(notifications.log_file or self.settings.data_dir / "notifications.jsonl"),
            WebhookChannel(self.settings.webhooks, self.settings.http, notifications.timeout),
        ]

    def dispatcher(
        self, channels: Sequence[Channel], sender: Callable[[], int | None] | None = None
    ) -> DeliveryDispatcher:
        """Return a dispatcher for these channels; `sender` returns its session lock's number."""
        from draftsman.loops.delivery_dispatcher import DeliveryDispatcher

        return DeliveryDispatcher(
            self.delivery_sender, channels, self.settings.notifications, sender
        )

    def delivery_process(self, channels: Sequence[Channel]) -> DeliveryProcess:
        """Return a delivery process for these channels."""
        from draftsman.loops.delivery_process import DeliveryProcess

        settings = self.settings.notifications
        return DeliveryProcess(
            self.delivery_sender, channels, settings, self.db, self._listen_url()
        )

    def listener(self, hear: Callable[[str, str], None]) -> NotificationListener:
        """Return a listener that calls `hear` with each notification."""
        from draftsman.loops.notification_listener import NotificationListener

        return NotificationListener(self.db, self._listen_url(), hear)

    def _listen_url(self) -> str | None:
        listen = self.settings.listen_url
        return listen.get_secret_value() if listen else None

    async def revive(self) -> None:
        """Start the embedded server if it has stopped; raises EmbeddedServerError."""
        await asyncio.to_thread(_server(self.settings).revive)

    async def actor(self, channel: Source = Source.CLI) -> Actor:
        """Return the actor of this process, with person and roles.

        On a local server it is the operating-system user, by uid and never by `$USER`; on a remote
        server the database role. The owner of an embedded database has every role.
        """
        health, _ = await self.read_model.health()
        named_by_role = health.kind != "owner" or not (self.embedded or health.local)
        name = health.role if named_by_role else login()
        return self.policy.resolve(Actor(channel, name, name, owner=self.embedded))


def login() -> str:
    """Return the name of this process's operating-system user."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"uid-{os.getuid()}"


def directory(settings: Settings) -> Directory:
    """Return the configured people, groups and switches."""
    people = {}
    for name, person in settings.people.items():
        all_ids = {"cli": person.login, "slack": person.slack, "trello": person.trello}
        ids = {channel: id for channel, id in all_ids.items() if id}
        people[name] = DirectoryEntry(frozenset(person.roles), ids, person.quiet, person.timezone)
    groups = {name: tuple(members) for name, members in settings.groups.items()}
    return Directory(people, groups, settings.questions.self_approval)


def policy(settings: Settings, people_directory: Directory | None = None) -> Policy:
    """Return the access policy of a directory, by default the configured directory."""
    source, defaults = people_directory or directory(settings), settings.questions
    people = {}
    for name, entry in source.people.items():
        ids = {Source(channel): id for channel, id in entry.ids.items()}
        if Source.CLI in ids:
            ids[Source.TUI] = ids[Source.API] = ids[Source.CLI]
        hours = quiet_hours.parse(
            entry.quiet or defaults.quiet, entry.timezone or defaults.timezone
        )
        people[name] = Person(name, entry.roles, ids, hours)
    return Policy(people, source.groups, source.self_approval)


def configured_limits(settings: Settings) -> JobLimits:
    """Return the job limits by type: built in, then configured."""
    types = dict(BUILT_IN)
    for name, type_settings in settings.types.items():
        types[name] = with_limit_changes(types.get(name, RetryPolicy()), type_settings.limits())
    return JobLimits(
        types,
        {name: agent.limits() for name, agent in settings.agents.items()},
        {name: tool.limits() for name, tool in settings.tools.items()},
        settings.handlers.keys() & job_payloads.MODELS.keys(),
    )


def targets(settings: Settings) -> tuple[Targets, Target | None]:
    """Return the configured targets, and the fallback; raises ConfigError."""
    notifications = settings.notifications
    try:
        default = tuple(parse(text) for text in notifications.targets)
        fallback = None if notifications.fallback == NONE else parse(notifications.fallback)
        all_targets = Targets(default, {name: hook.on for name, hook in settings.webhooks.items()})
        for target in (*default, *([fallback] if fallback else ())):
            all_targets.check(target)
    except UsageError as error:
        raise ConfigError(f"notifications: {error}") from None
    return all_targets, fallback


async def database_url(settings: Settings, *, migrations: bool = True) -> tuple[str, bool]:
    """Return the URL of the database, and whether it is embedded; start an embedded server.

    Only the embedded database is migrated automatically.
    """
    if settings.database_url is not None:
        return settings.database_url.get_secret_value(), False
    url = await _start_server(_server(settings))
    if migrations:
        await migrate.migrate(url)
    return url, True


async def _start_server(server: EmbeddedServer) -> str:
    """Start the server and return its URL; on cancellation, wait for the starting thread."""
    starting = asyncio.create_task(asyncio.to_thread(server.ensure))
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        server.cancel_start()
        await asyncio.wait([starting])
        with contextlib.suppress(DraftsmanError):
            starting.result()
        raise


def _server(settings: Settings) -> EmbeddedServer:
    from draftsman.embedded import EmbeddedServer

    return EmbeddedServer(settings.data_dir, settings.embedded.idle_stop)


@asynccontextmanager
async def open_runtime(settings: Settings, *, read_only: bool = False) -> AsyncIterator[Runtime]:
    """Connect and build the services; raises DatabaseUnreachable, SchemaOutdated."""
    url, embedded = await database_url(settings)
    db = Database(url, settings.database, read_only=read_only)
    try:
        await db.open()
        rt = wire(settings, db, embedded)
        rt.policy.update_from(policy(settings, await _directory(rt, import_people=not read_only)))
        refresh = asyncio.create_task(_refresh_people(rt))
        try:
            yield rt
        finally:
            refresh.cancel()
    finally:
        await db.close()


async def _directory(rt: Runtime, *, import_people: bool) -> Directory | None:
    """Return the people of the database, None without any.

    An embedded database imports the configured people, if there are any.
    """
    try:
        stored = await rt.people.directory()
        configured = directory(rt.settings)
        if rt.embedded and configured and import_people and stored.changes(configured):
            await rt.people.save(configured)
            stored = configured
    except SchemaOutdated:  # commands that need the schema raise it themselves
        return None
    return stored or None


async def _refresh_people(rt: Runtime) -> None:
    """Reload changed people while the process runs."""
    while True:
        await asyncio.sleep(PEOPLE_REFRESH)
        with contextlib.suppress(DraftsmanError):
            current = policy(rt.settings, await _directory(rt, import_people=False))
            if current != rt.policy:
                rt.policy.update_from(current)


def wire(settings: Settings, db: Database, embedded: bool) -> Runtime:
    """Build the services over an open database, with the configured people."""
    people, limits = policy(settings), configured_limits(settings)
    lease, retention = settings.worker.lease, settings.retention
    folder = retention.archive or settings.data_dir / "archive"
    archives = Archives(db, people, retention, folder, settings.sweeps.limit)
    known_targets, fallback = targets(settings)
    job_control, question_settings = JobControl(db, people), settings.questions
    hours = quiet_hours.parse(question_settings.quiet, question_settings.timezone)
    people.login = login() if embedded else None
    reminders = Reminders(db, people, hours, settings.sweeps.limit)
    return Runtime(
        settings,
        db,
        embedded,
        people,
        limits,
        Submissions(db, people, limits, known_targets),
        Questions(db, people, question_settings.expires_in, question_settings.escalate_to),
        job_control,
        ReadModel(db, lease),
        Checkpoints(db),
        Settlement(db, limits),
        Sweeps(db, people, settings.sweeps, lease, archives, reminders, fallback),
        archives,
        BulkRetry(db, job_control),
        Outbox(db, people, known_targets),
        DeliverySender(db, settings.notifications, fallback, people),
        Threads(db),
        People(db, people),
        TrelloBoards(db, people),
        Repos(db, people),
    )
