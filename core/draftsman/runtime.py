"""Everything wired: what a front end holds, and all that it needs.

What only a worker or the embedded server needs is imported when one is wanted: a command of a
person starts in half the time without it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import pwd
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Final
from uuid import UUID

from draftsman import migrate, version
from draftsman.configured import configured_limits, configured_targets, directory, policy
from draftsman.domain.ids import new_id
from draftsman.domain.job import Source
from draftsman.domain.people import quiet_hours
from draftsman.domain.people.actor import Actor
from draftsman.domain.people.directory import Directory
from draftsman.domain.people.policy import Policy
from draftsman.errors import DraftsmanError, SchemaOutdated
from draftsman.settings import Settings
from draftsman.store.postgres.database import Database

if TYPE_CHECKING:
    from draftsman.domain.messages.target import Target, Targets
    from draftsman.domain.retries.job_limits import JobLimits
    from draftsman.embedded import EmbeddedServer
    from draftsman.handlers.registry import Handler
    from draftsman.loops.delivery_dispatcher import DeliveryDispatcher
    from draftsman.loops.delivery_process import DeliveryProcess
    from draftsman.loops.notification_listener import NotificationListener
    from draftsman.loops.worker_process import WorkerProcess
    from draftsman.ports import Channel
    from draftsman.schemas.checker import SchemaChecker
    from draftsman.services.deliveries.delivery_sender import DeliverySender
    from draftsman.services.deliveries.outbox import Outbox
    from draftsman.services.jobs.bulk_retry import BulkRetry
    from draftsman.services.jobs.job_control import JobControl
    from draftsman.services.jobs.read_model import ReadModel
    from draftsman.services.jobs.submissions import Submissions
    from draftsman.services.maintenance.archives import Archives
    from draftsman.services.maintenance.sweeps import Sweeps
    from draftsman.services.people import People
    from draftsman.services.questions import Questions
    from draftsman.services.repos import Repos
    from draftsman.services.runs.checkpoints import Checkpoints
    from draftsman.services.runs.claim import Claim
    from draftsman.services.runs.settlement import Settlement
    from draftsman.services.threads import Threads
    from draftsman.services.trello_boards import TrelloBoards


PEOPLE_REFRESH: Final = 15.0
"""Seconds after which a long-running process looks for changed people."""


@dataclass(frozen=True)
class Runtime:
    """The services over one database, each made when it is first used."""

    settings: Settings
    db: Database
    embedded: bool
    policy: Policy

    @cached_property
    def limits(self) -> JobLimits:
        """Limits of each job type, agent and tool."""
        return configured_limits(self.settings)

    @cached_property
    def targets(self) -> tuple[Targets, Target | None]:
        """Configured targets, and the fallback; raises ConfigError."""
        return configured_targets(self.settings)

    @cached_property
    def submissions(self) -> Submissions:
        """Submission of jobs."""
        from draftsman.services.jobs.submissions import Submissions

        return Submissions(self.db, self.policy, self.limits, self.targets[0])

    @cached_property
    def questions(self) -> Questions:
        """Questions and answers."""
        from draftsman.services.questions import Questions

        asked = self.settings.questions
        return Questions(self.db, self.policy, asked.expires_in, asked.escalate_to)

    @cached_property
    def job_control(self) -> JobControl:
        """Cancel and retry of jobs."""
        from draftsman.services.jobs.job_control import JobControl

        return JobControl(self.db, self.policy)

    @cached_property
    def read_model(self) -> ReadModel:
        """Queries of jobs, events and workers."""
        from draftsman.services.jobs.read_model import ReadModel

        return ReadModel(self.db, self.settings.worker.lease)

    @cached_property
    def checkpoints(self) -> Checkpoints:
        """Checkpoints, steps, artifacts and logs of runs."""
        from draftsman.services.runs.checkpoints import Checkpoints

        return Checkpoints(self.db)

    @cached_property
    def settle(self) -> Settlement:
        """Ends of runs."""
        from draftsman.services.runs.settlement import Settlement

        return Settlement(self.db, self.limits)

    @cached_property
    def archives(self) -> Archives:
        """Archived months of events."""
        from draftsman.services.maintenance.archives import Archives

        retention, limit = self.settings.retention, self.settings.sweeps.limit
        folder = retention.archive or self.settings.data_dir / "archive"
        return Archives(self.db, self.policy, retention, folder, limit)

    @cached_property
    def sweeps(self) -> Sweeps:
        """Maintenance of the leader."""
        from draftsman.services.maintenance.reminders import Reminders
        from draftsman.services.maintenance.sweeps import Sweeps

        asked, sweeps = self.settings.questions, self.settings.sweeps
        hours = quiet_hours.parse(asked.quiet, asked.timezone)
        reminders = Reminders(self.db, self.policy, hours, sweeps.limit)
        lease, fallback = self.settings.worker.lease, self.targets[1]
        return Sweeps(self.db, self.policy, sweeps, lease, self.archives, reminders, fallback)

    @cached_property
    def bulk_retry(self) -> BulkRetry:
        """Retry of all jobs that match a filter."""
        from draftsman.services.jobs.bulk_retry import BulkRetry

        return BulkRetry(self.db, self.job_control)

    @cached_property
    def outbox(self) -> Outbox:
        """Queries and redelivery of messages."""
        from draftsman.services.deliveries.outbox import Outbox

        return Outbox(self.db, self.policy, self.targets[0])

    @cached_property
    def delivery_sender(self) -> DeliverySender:
        """Claims and results of deliveries."""
        from draftsman.services.deliveries.delivery_sender import DeliverySender

        settings = self.settings.notifications
        return DeliverySender(self.db, settings, self.targets[1], self.policy)

    @cached_property
    def threads(self) -> Threads:
        """Threads of chat and the jobs that they are about."""
        from draftsman.services.threads import Threads

        return Threads(self.db)

    @cached_property
    def people(self) -> People:
        """People and their linked identities."""
        from draftsman.services.people import People

        return People(self.db, self.policy)

    @cached_property
    def boards(self) -> TrelloBoards:
        """Trello boards and their label episodes."""
        from draftsman.services.trello_boards import TrelloBoards

        return TrelloBoards(self.db, self.policy)

    @cached_property
    def repos(self) -> Repos:
        """Repositories, their labels and profiles."""
        from draftsman.services.repos import Repos

        return Repos(self.db, self.policy)

    @cached_property
    def schemas(self) -> SchemaChecker:
        """Checks of JSON Schema in a child process."""
        from draftsman.schemas.checker import SchemaChecker

        return SchemaChecker()

    def claim(self, worker: UUID, queues: Sequence[str]) -> Claim:
        """Return the claims of one worker."""
        from draftsman.services.runs.claim import Claim

        return Claim(self.db, worker, queues)

    def worker_process(
        self,
        handlers: Mapping[str, Handler],
        *,
        queues: Sequence[str] | None = None,
        slots: int | None = None,
        leader: bool = True,
    ) -> WorkerProcess:
        """Return a worker of this process with everything around it."""
        from draftsman.loops.execution import WorkerServices
        from draftsman.loops.worker_process import WorkerProcess

        worker, served = new_id(), queues or self.settings.worker.queues
        bench = WorkerServices(
            self.settings,
            self.limits,
            self.claim(worker, served),
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
            bench,
            self.db,
            handlers,
            version=version.installed(),
            queues=served,
            slots=slots or self.settings.worker.slots,
            sweeps=self.sweeps if leader else None,
            dispatcher=partial(self.dispatcher, self.channels()),
        )

    def channels(self) -> list[Channel]:
        """Return the channels that a worker serves: the log and the webhooks."""
        from draftsman.channels.log_channel import LogChannel
        from draftsman.channels.webhook_channel import WebhookChannel

        told = self.settings.notifications
        return [
            LogChannel(told.log_file or self.settings.data_dir / "notifications.jsonl"),
            WebhookChannel(self.settings.webhooks, self.settings.http, told.timeout),
        ]

    def dispatcher(
        self, channels: Sequence[Channel], sender: Callable[[], int | None] | None = None
    ) -> DeliveryDispatcher:
        """Return what sends the deliveries of these channels, under a session lock if any."""
        from draftsman.loops.delivery_dispatcher import DeliveryDispatcher

        return DeliveryDispatcher(
            self.delivery_sender, channels, self.settings.notifications, sender
        )

    def delivery_process(self, channels: Sequence[Channel]) -> DeliveryProcess:
        """Return what sends the deliveries of these channels in a process without a worker."""
        from draftsman.loops.delivery_process import DeliveryProcess

        settings = self.settings.notifications
        return DeliveryProcess(
            self.delivery_sender, channels, settings, self.db, self._listen_url()
        )

    def listener(self, hear: Callable[[str, str], None]) -> NotificationListener:
        """Return what hands each notification of the database to `hear`."""
        from draftsman.loops.notification_listener import NotificationListener

        return NotificationListener(self.db, self._listen_url(), hear)

    def _listen_url(self) -> str | None:
        listen = self.settings.listen_url
        return listen.get_secret_value() if listen else None

    async def revive(self) -> None:
        """Start the embedded server where it is gone; raises EmbeddedServerError."""
        await asyncio.to_thread(_server(self.settings).revive)

    async def actor(self, channel: Source = Source.CLI) -> Actor:
        """Return who runs this process, with their person and roles.

        On a local server that is the operating-system user, by uid and never by `$USER`; on a
        remote one the database role. The owner of an embedded database has every role.
        """
        health, _ = await self.read_model.health()
        named_by_role = health.kind != "owner" or not (self.embedded or health.local)
        name = health.role if named_by_role else login()
        return self.policy.resolve(Actor(channel, name, name, owner=self.embedded))


def login() -> str:
    """Return the name of the user that this process really runs as."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"uid-{os.getuid()}"


async def database_url(settings: Settings, *, migrations: bool = True) -> tuple[str, bool]:
    """Return the URL of the database, and whether it is the embedded one, which is started.

    The embedded database migrates by itself; a server never does.
    """
    if settings.database_url is not None:
        return settings.database_url.get_secret_value(), False
    url = await _start_server(_server(settings))
    if migrations:
        await migrate.migrate(url)
    return url, True


async def _start_server(server: EmbeddedServer) -> str:
    """Return its URL once it answers; a cancellation waits until no thread starts it any more."""
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
    """Connect and wire; raises DatabaseUnreachable, SchemaOutdated."""
    url, embedded = await database_url(settings)
    db = Database(url, settings.database, read_only=read_only)
    try:
        await db.open()
        rt = wire(settings, db, embedded)
        rt.policy.update_from(policy(settings, await _directory(rt, import_people=not read_only)))
        refresh = asyncio.create_task(_keep_up(rt))
        try:
            yield rt
        finally:
            refresh.cancel()
    finally:
        await db.close()


async def _directory(rt: Runtime, *, import_people: bool) -> Directory | None:
    """Return the people of the database, None where there are none.

    An embedded database gets those of the configuration, if that has any.
    """
    try:
        found = await rt.people.directory()
        known = directory(rt.settings)
        if rt.embedded and known and import_people and found.changes(known):
            await rt.people.save(known)
            found = known
    except SchemaOutdated:  # who needs more than the configuration says so
        return None
    return found or None


async def _keep_up(rt: Runtime) -> None:
    """Load changed people again, for as long as the process runs."""
    while True:
        await asyncio.sleep(PEOPLE_REFRESH)
        with contextlib.suppress(DraftsmanError):
            found = policy(rt.settings, await _directory(rt, import_people=False))
            if found != rt.policy:
                rt.policy.update_from(found)


def wire(settings: Settings, db: Database, embedded: bool) -> Runtime:
    """Return the services over an open database; people are those of the configuration."""
    people = policy(settings)
    people.login = login() if embedded else None
    return Runtime(settings, db, embedded, people)
