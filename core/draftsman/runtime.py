"""Services of a process over one database, and their construction from the settings.

Modules that few commands need are imported on first use, which halves the start-up of the others.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING
from uuid import UUID

from draftsman import configured, migrate, version
from draftsman.basic_settings import BasicSettings
from draftsman.domain.ids import new_id
from draftsman.domain.job import Source
from draftsman.domain.people.actor import Actor
from draftsman.domain.people.policy import Policy
from draftsman.host import login
from draftsman.store.postgres.database import Database

if TYPE_CHECKING:
    from draftsman.domain.deliveries.target import Target, Targets
    from draftsman.domain.retries.job_limits import JobLimits
    from draftsman.handlers.registry import Handler
    from draftsman.loops.delivery_dispatcher import DeliveryDispatcher
    from draftsman.loops.delivery_process import DeliveryProcess
    from draftsman.loops.notification_listener import NotificationListener
    from draftsman.loops.worker_process import WorkerProcess
    from draftsman.ports import Channel
    from draftsman.schemas.checker import SchemaChecker
    from draftsman.services.budgets import Budgets
    from draftsman.services.deliveries.delivery_sender import DeliverySender
    from draftsman.services.deliveries.outbox import Outbox
    from draftsman.services.forges.forge_events import ForgeEvents
    from draftsman.services.jobs.attachments import Attachments
    from draftsman.services.jobs.bulk_retry import BulkRetry
    from draftsman.services.jobs.job_control import JobControl
    from draftsman.services.jobs.job_messages import JobMessages
    from draftsman.services.jobs.read_model import ReadModel
    from draftsman.services.jobs.request_checks import RequestChecks
    from draftsman.services.jobs.submissions import Submissions
    from draftsman.services.jobs.workflows import Workflows
    from draftsman.services.maintenance.archives import Archives
    from draftsman.services.maintenance.sweeps import Sweeps
    from draftsman.services.pending_decisions import PendingDecisions
    from draftsman.services.people import People
    from draftsman.services.questions import Questions
    from draftsman.services.queue_reservations import Reservations
    from draftsman.services.queues import Queues
    from draftsman.services.repos import Repos
    from draftsman.services.runs.checkpoints import Checkpoints
    from draftsman.services.runs.claim import Claim
    from draftsman.services.runs.model_calls import ModelCalls
    from draftsman.services.runs.settlement import Settlement
    from draftsman.services.schedules.schedules import Schedules
    from draftsman.services.schedules.templates import Templates
    from draftsman.services.threads import Threads
    from draftsman.services.trello_boards import TrelloBoards
    from draftsman.settings import Settings


@dataclass(frozen=True)
class Runtime(configured.AttentionServices):
    """The services over one database, each made when it is first used."""

    settings: Settings
    db: Database
    embedded: bool
    policy: Policy

    @cached_property
    def limits(self) -> JobLimits:
        """Limits of each job type, agent and tool."""
        return configured.configured_limits(self.settings)

    @cached_property
    def targets(self) -> tuple[Targets, Target | None]:
        """Configured targets, and the fallback; raises ConfigError."""
        return configured.configured_targets(self.settings)

    @cached_property
    def submissions(self) -> Submissions:
        """Submission of jobs."""
        from draftsman.services.jobs.submissions import Submissions

        used = self.db, self.policy, self.limits, self.targets[0]
        return Submissions(*used, lambda types: self.request_checks.type_warnings(types))

    @cached_property
    def request_checks(self) -> RequestChecks:
        """Checks of requests before their submission."""
        from draftsman.services.jobs.request_checks import RequestChecks

        used = self.settings, self.repos, self.read_model, lambda: self.queues
        return RequestChecks(*used, embedded=self.embedded)

    @cached_property
    def questions(self) -> Questions:
        """Questions and answers."""
        from draftsman.services.questions import Questions

        asked, ladders = self.settings.questions, configured.ladder_choices(self.settings)
        return Questions(self.db, self.policy, asked.expires_in, asked.escalate_to, ladders)

    @cached_property
    def job_control(self) -> JobControl:
        """Cancel and retry of jobs."""
        from draftsman.services.jobs.job_control import JobControl

        return JobControl(self.db, self.policy)

    @cached_property
    def pending_decisions(self) -> PendingDecisions:
        """Answers, decisions and cancels in their undo window."""
        from draftsman.services.pending_decisions import PendingDecisions

        return PendingDecisions(self.db, self.policy, self.questions, self.job_control)

    @cached_property
    def messages(self) -> JobMessages:
        """Messages of people to the agents of jobs."""
        from draftsman.services.jobs.job_messages import JobMessages

        return JobMessages(self.db, self.policy)

    @cached_property
    def attachments(self) -> Attachments:
        """Files that people sent with requests and messages."""
        from draftsman.services.jobs.attachments import Attachments

        return Attachments(self.db)

    @cached_property
    def read_model(self) -> ReadModel:
        """Queries of jobs, events and workers."""
        from draftsman.services.jobs.read_model import ReadModel

        return ReadModel(self.db, self.settings.worker.lease)

    @cached_property
    def workflows(self) -> Workflows:
        """Jobs that wait for other jobs."""
        from draftsman.services.jobs.workflows import Workflows

        return Workflows(self.db, lambda: self.limits, lambda: self.repos)

    @cached_property
    def checkpoints(self) -> Checkpoints:
        """Checkpoints, steps, artifacts and logs of runs."""
        from draftsman.services.runs.checkpoints import Checkpoints

        return Checkpoints(self.db)

    @cached_property
    def model_calls(self) -> ModelCalls:
        """Money and tokens of model calls."""
        from draftsman.services.runs.model_calls import ModelCalls

        return ModelCalls(self.db)

    @cached_property
    def settlement(self) -> Settlement:
        """Ends of runs."""
        from draftsman.services.runs.settlement import Settlement

        return Settlement(self.db, self.limits)

    @cached_property
    def archives(self) -> Archives:
        """Archived months of events."""
        from draftsman.services.maintenance.archives import Archives

        kept, limit = self.settings.retention, self.settings.sweeps.limit
        folder = kept.archive_dir or self.settings.data_dir / "archive"
        return Archives(self.db, self.policy, kept, folder, limit)

    @cached_property
    def sweeps(self) -> Sweeps:
        """Maintenance of the leader."""
        from draftsman.services.maintenance.sweeps import Sweeps

        used = self.settings, self.db, self.policy
        services = self.templates, self.request_checks, self.submissions
        timed = configured.reminders(*used), configured.firing(*used, *services)
        own = self.db, self.policy, self.settings.sweeps, self.settings.worker.lease
        parts = *own, self.archives, *timed, configured.ladder_sweep(*used)
        decisions = self.pending_decisions, self.rules, self.digests
        types = configured.type_sweep(self.settings, self.db, self.settlement)
        more = *decisions, types, self.targets[1], *configured.sweep_rules(self.settings)
        return Sweeps(*(*parts, *more, self.settings.read_forges))

    @cached_property
    def budgets(self) -> Budgets:
        """Budgets with their use, and costs."""
        from draftsman.services.budgets import Budgets

        return Budgets(self.db, self.settings.budgets.rules())

    @cached_property
    def queues(self) -> Queues:
        """Queues and their pauses."""
        from draftsman.services.queues import Queues

        return Queues(self.db, self.policy, self.settings.worker.lease)

    @cached_property
    def reservations(self) -> Reservations:
        """Jobs that reserve their queue."""
        from draftsman.services.queue_reservations import Reservations

        return Reservations(self.db, self.policy, self.submissions)

    @cached_property
    def bulk_retry(self) -> BulkRetry:
        """Retry of all jobs that match a filter."""
        from draftsman.services.jobs.bulk_retry import BulkRetry

        return BulkRetry(self.db, self.job_control)

    @cached_property
    def outbox(self) -> Outbox:
        """Queries and redelivery of messages."""
        from draftsman.services.deliveries.outbox import Outbox

        def check(target: Target) -> None:
            self.targets[0].check(target)

        return Outbox(self.db, self.policy, check, self.settings.worker.lease)

    @cached_property
    def delivery_sender(self) -> DeliverySender:
        """Claims and results of deliveries."""
        from draftsman.services.deliveries.delivery_sender import DeliverySender

        return DeliverySender(self.db, self.settings.notifications, self.targets[1], self.policy)

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
    def forge_events(self) -> ForgeEvents:
        """Events of forges, and follow-ups on pull requests."""
        from draftsman.services.forges.forge_events import ForgeEvents

        return ForgeEvents(self.db)

    @cached_property
    def repos(self) -> Repos:
        """Repositories, their labels and profiles."""
        from draftsman.services.repos import Repos

        return Repos(self.db, self.policy)

    @cached_property
    def templates(self) -> Templates:
        """Templates of jobs."""
        from draftsman.services.schedules.templates import Templates

        return Templates(self.db, self.policy, self.settings, self.request_checks)

    @cached_property
    def schedules(self) -> Schedules:
        """Schedules of jobs."""
        from draftsman.services.schedules.schedules import Schedules

        services = self.templates, self.request_checks, self.submissions
        return Schedules(self.db, self.policy, self.settings, *services)

    @cached_property
    def schemas(self) -> SchemaChecker:
        """Checks of JSON Schema in a child process."""
        from draftsman.schemas.checker import SchemaChecker

        return SchemaChecker()

    def claim(self, worker: UUID, queues: Sequence[str]) -> Claim:
        """Return the claim service of a worker."""
        from draftsman.services.runs.claim import Claim

        return Claim(self.db, worker, queues, limited=bool(self.settings.limits.rules()))

    def worker_process(
        self,
        handlers: Mapping[str, Handler],
        *,
        queues: Sequence[str] | None = None,
        slots: int | None = None,
        leader: bool = True,
    ) -> WorkerProcess:
        """Return a worker with its loops for this process."""
        from draftsman.loops.execution import WorkerServices
        from draftsman.loops.worker_process import WorkerProcess

        worker, served_queues = new_id(), queues or self.settings.worker.queues
        claim, revive = self.claim(worker, served_queues), self.revive if self.embedded else None
        runs = self.checkpoints, self.model_calls, self.questions, self.settlement
        used = *runs, self.outbox, self.repos, self.workflows, revive
        channels = configured.worker_channels(self.settings)
        services = WorkerServices(self.settings, self.limits, claim, *used, self.schemas)
        return WorkerProcess(
            *(worker, services, self.db, handlers),
            version=version.installed(),
            queues=served_queues,
            slots=slots or self.settings.worker.slots,
            sweeps=self.sweeps if leader else None,
            targets=configured.target_names(channels),
            dispatcher=partial(self.dispatcher, channels),
        )

    def dispatcher(
        self, channels: Sequence[Channel], sender: Callable[[], int | None] | None = None
    ) -> DeliveryDispatcher:
        """Return the dispatcher of these channels; `sender` returns the key of its session lock."""
        from draftsman.loops.delivery_dispatcher import DeliveryDispatcher

        used = channels, self.settings.notifications, sender
        return DeliveryDispatcher(self.delivery_sender, *used)

    def delivery_process(self, channels: Sequence[Channel]) -> DeliveryProcess:
        """Return the delivery process of these channels, for a process without a worker."""
        from draftsman.loops.delivery_process import DeliveryProcess

        used = self.settings.notifications, self.db, configured.listen_url(self.settings)
        return DeliveryProcess(self.delivery_sender, channels, *used)

    def listener(self, on_notification: Callable[[str, str], None]) -> NotificationListener:
        """Return a listener that passes channel and payload of each notification."""
        from draftsman.loops.notification_listener import NotificationListener

        return NotificationListener(self.db, configured.listen_url(self.settings), on_notification)

    async def revive(self) -> None:
        """Restart the embedded server if it was killed; raises EmbeddedServerError."""
        await asyncio.to_thread(configured.server(self.settings).revive)

    async def actor(self, channel: Source = Source.CLI) -> Actor:
        """Return the user of this process, with person and roles.

        On a local server that is the operating-system user, by uid and never by `$USER`; on a
        remote server the database role. The owner of an embedded database has every role.
        """
        health, _ = await self.read_model.health()
        is_local = health.kind == "owner" and (self.embedded or health.local)
        name = login() if is_local else health.role
        return self.policy.resolve(Actor(channel, name, name, owner=self.embedded))


@asynccontextmanager
async def open_runtime(
    settings: Settings, *, read_only: bool = False, pooled: bool = True
) -> AsyncIterator[Runtime]:
    """Connect and build the services; raises DatabaseUnreachable, SchemaOutdated."""
    url, embedded = await configured.database_url(settings, migrations=False)
    db = Database(url, settings.database, read_only=read_only, pooled=pooled)
    try:
        await db.open(partial(migrate.migrate_pending, url) if embedded else None)
        rt = wire(settings, db, embedded)
        imported = embedded and not read_only  # the configured people, into an embedded database
        people = await configured.stored_directory(rt.people, settings, import_people=imported)
        rt.policy.update_from(configured.policy(settings, people))
        refresh = asyncio.create_task(configured.refresh_people(rt.people, settings, rt.policy))
        try:
            yield rt
        finally:
            refresh.cancel()
    finally:
        await db.close()


def wire(settings: Settings, db: Database, embedded: bool) -> Runtime:
    """Build the services over an open database; raises ConfigError for an invalid target."""
    people = configured.policy(settings)
    people.login = login() if embedded else None
    rt = Runtime(settings, db, embedded, people)
    checked = isinstance(settings, BasicSettings)  # its targets were checked before
    if not checked and settings.notifications.model_fields_set & {"targets", "fallback"}:
        _ = rt.targets  # reports an invalid target in every command
    return rt
