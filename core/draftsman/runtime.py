"""Services of a process over one database, and their construction from the settings.

Modules that few commands need are imported on first use, which halves the start-up of the others.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Final
from uuid import UUID

from draftsman import configured, version
from draftsman.basic_settings import BasicSettings
from draftsman.database import migrate
from draftsman.database.database import Database
from draftsman.deliveries import delivery
from draftsman.ids import new_id
from draftsman.jobs import job, retries
from draftsman.jobs.job import Source
from draftsman.jobs.runs import run
from draftsman.people.actor import Actor
from draftsman.people.policy import Policy
from draftsman.processes.host import login
from draftsman.questions import question

if TYPE_CHECKING:
    from draftsman.agent_runs.activity.service.activity import ActivityStream
    from draftsman.agent_runs.changes.service import Changes
    from draftsman.costs.service.budgets import Budgets, ModelCalls
    from draftsman.database.notification_listener import NotificationListener
    from draftsman.deliveries.channel import Channel
    from draftsman.deliveries.dispatcher import DeliveryDispatcher
    from draftsman.deliveries.process import DeliveryProcess
    from draftsman.deliveries.service.delivery_sender import DeliverySender
    from draftsman.deliveries.service.outbox import Outbox
    from draftsman.deliveries.service.threads import Threads
    from draftsman.deliveries.target import Target, Targets
    from draftsman.events.service.archives import Archives
    from draftsman.forges.service.forge_events import ForgeEvents
    from draftsman.handlers.registry import Handler
    from draftsman.jobs.control.service.bulk_retry import BulkRetry
    from draftsman.jobs.control.service.control import JobControl
    from draftsman.jobs.control.service.messages import JobMessages, RunMessages
    from draftsman.jobs.details.service.log_feed import LogFeed
    from draftsman.jobs.details.service.read_model import ReadModel
    from draftsman.jobs.pending_decisions.service import PendingDecisions
    from draftsman.jobs.requests.service.attachments import Attachments
    from draftsman.jobs.requests.service.request_checks import RequestChecks
    from draftsman.jobs.requests.service.submissions import Submissions
    from draftsman.jobs.runs.job_limits import JobLimits
    from draftsman.jobs.runs.service.checkpoints import Checkpoints
    from draftsman.jobs.runs.service.claim import Claim
    from draftsman.jobs.runs.service.settlement import Settlement
    from draftsman.json_schemas.checker import SchemaChecker
    from draftsman.people.service.people import People
    from draftsman.questions.service.asking import Asking
    from draftsman.questions.service.questions import Questions
    from draftsman.queues.service.queues import Queues
    from draftsman.queues.service.reservations import Reservations
    from draftsman.repos.service import Repos
    from draftsman.schedules.service.schedules import Schedules
    from draftsman.schedules.service.templates import Templates
    from draftsman.settings import Settings
    from draftsman.trello.service.boards import TrelloBoards
    from draftsman.worker.service import Sweeps
    from draftsman.worker.worker_process import WorkerProcess
    from draftsman.workflows.service.workflows import Workflows

ENUMS: Final = {
    **job.ENUMS,
    **retries.ENUMS,
    **run.ENUMS,
    **question.ENUMS,
    **delivery.ENUMS,
}


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
        from draftsman.jobs.requests.service.submissions import Submissions
        from draftsman.workflows.service.linked_requests import RequestLinks

        return Submissions(
            db=self.db,
            policy=self.policy,
            limits=self.limits,
            targets=self.targets[0],
            links=RequestLinks(),
            type_warnings=lambda types: self.request_checks.type_warnings(types),
        )

    @cached_property
    def request_checks(self) -> RequestChecks:
        """Checks of requests before their submission."""
        from draftsman.jobs.requests.service.request_checks import RequestChecks

        return RequestChecks(
            settings=self.settings, repos=self.repos, db=self.db, embedded=self.embedded
        )

    @cached_property
    def questions(self) -> Questions:
        """Questions and answers."""
        from draftsman.questions.service.questions import Questions

        return Questions(self.db, self.policy)

    @cached_property
    def asking(self) -> Asking:
        """Questions that runs ask."""
        from draftsman.questions.permission_rules.service import answer_by_rule
        from draftsman.questions.service.asking import Asking

        settings = self.settings.questions
        return Asking(
            self.db,
            self.policy,
            self.questions,
            expires_in=settings.expires_in,
            escalate_to=settings.escalate_to,
            ladders=configured.ladder_choices(self.settings),
            answer_by_rule=answer_by_rule,
        )

    @cached_property
    def job_control(self) -> JobControl:
        """Cancel and retry of jobs."""
        from draftsman.jobs.control.service.control import JobControl

        return JobControl(self.db, self.policy)

    @cached_property
    def pending_decisions(self) -> PendingDecisions:
        """Answers, decisions and cancels in their undo window."""
        from draftsman.jobs.pending_decisions.service import PendingDecisions

        return PendingDecisions(self.db, self.policy, self.questions, self.job_control)

    @cached_property
    def messages(self) -> JobMessages:
        """Messages of people to the agents of jobs."""
        from draftsman.jobs.control.service.messages import JobMessages

        return JobMessages(self.db, self.policy)

    @cached_property
    def attachments(self) -> Attachments:
        """Files that people sent with requests and messages."""
        from draftsman.jobs.requests.service.attachments import Attachments

        return Attachments(self.db)

    @cached_property
    def read_model(self) -> ReadModel:
        """Queries of jobs, events and workers."""
        from draftsman.jobs.details.service.read_model import ReadModel

        return ReadModel(self.db, self.settings.worker.lease)

    @cached_property
    def log_feed(self) -> LogFeed:
        """Logs of jobs for people."""
        from draftsman.jobs.details.service.log_feed import LogFeed

        return LogFeed(self.read_model, self.checkpoints, self.activity)

    @cached_property
    def workflows(self) -> Workflows:
        """Jobs that wait for other jobs."""
        from draftsman.workflows.service.workflows import Workflows

        return Workflows(self.db, lambda: self.limits, lambda: self.repos)

    @cached_property
    def checkpoints(self) -> Checkpoints:
        """Checkpoints, steps, artifacts and logs of runs."""
        from draftsman.jobs.runs.service.checkpoints import Checkpoints

        return Checkpoints(self.db)

    @cached_property
    def changes(self) -> Changes:
        """Patches of runs, and the changes that people review."""
        from draftsman.agent_runs.changes.service import Changes

        return Changes(self.db)

    @cached_property
    def activity(self) -> ActivityStream:
        """Activity of agents."""
        from draftsman.agent_runs.activity.service.activity import ActivityStream

        return ActivityStream(self.db)

    @cached_property
    def run_messages(self) -> RunMessages:
        """Messages of people, as runs give them to their agents."""
        from draftsman.jobs.control.service.messages import RunMessages

        return RunMessages(self.db)

    @cached_property
    def model_calls(self) -> ModelCalls:
        """Money and tokens of model calls."""
        from draftsman.costs.service.budgets import ModelCalls

        return ModelCalls(self.db)

    @cached_property
    def settlement(self) -> Settlement:
        """Ends of runs."""
        from draftsman.jobs.runs.service.settlement import Settlement

        return Settlement(self.db, self.limits)

    @cached_property
    def archives(self) -> Archives:
        """Archived months of events."""
        from draftsman.events.service.archives import Archives

        kept = self.settings.retention
        limit = self.settings.sweeps.limit
        folder = kept.archive_dir or self.settings.data_dir / "archive"
        return Archives(self.db, self.policy, kept, folder, limit)

    @cached_property
    def sweeps(self) -> Sweeps:
        """Maintenance of the leader."""
        from draftsman.worker.service import Sweeps

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
        from draftsman.costs.service.budgets import Budgets

        return Budgets(self.db, self.settings.budgets.rules())

    @cached_property
    def queues(self) -> Queues:
        """Queues and their pauses."""
        from draftsman.queues.service.queues import Queues

        return Queues(self.db, self.policy, self.settings.worker.lease)

    @cached_property
    def reservations(self) -> Reservations:
        """Jobs that reserve their queue."""
        from draftsman.queues.service.reservations import Reservations

        return Reservations(self.db, self.policy, self.submissions)

    @cached_property
    def bulk_retry(self) -> BulkRetry:
        """Retry of all jobs that match a filter."""
        from draftsman.jobs.control.service.bulk_retry import BulkRetry

        return BulkRetry(self.db, self.job_control)

    @cached_property
    def outbox(self) -> Outbox:
        """Queries and redelivery of messages."""
        from draftsman.deliveries.service.outbox import Outbox

        def check(target: Target) -> None:
            self.targets[0].check(target)

        return Outbox(self.db, self.policy, check, self.settings.worker.lease)

    @cached_property
    def delivery_sender(self) -> DeliverySender:
        """Claims and results of deliveries."""
        from draftsman.deliveries.service.delivery_sender import DeliverySender

        return DeliverySender(self.db, self.settings.notifications, self.targets[1], self.policy)

    @cached_property
    def threads(self) -> Threads:
        """Threads of chat and the jobs that they are about."""
        from draftsman.deliveries.service.threads import Threads

        return Threads(self.db)

    @cached_property
    def people(self) -> People:
        """People and their linked identities."""
        from draftsman.people.service.people import People

        return People(self.db, self.policy)

    @cached_property
    def boards(self) -> TrelloBoards:
        """Trello boards and their label episodes."""
        from draftsman.trello.service.boards import TrelloBoards

        return TrelloBoards(self.db, self.policy)

    @cached_property
    def forge_events(self) -> ForgeEvents:
        """Events of forges, and follow-ups on pull requests."""
        from draftsman.forges.service.forge_events import ForgeEvents

        return ForgeEvents(self.db)

    @cached_property
    def repos(self) -> Repos:
        """Repositories, their labels and profiles."""
        from draftsman.repos.service import Repos

        return Repos(self.db, self.policy)

    @cached_property
    def templates(self) -> Templates:
        """Templates of jobs."""
        from draftsman.schedules.service.templates import Templates

        return Templates(self.db, self.policy, self.settings, self.request_checks)

    @cached_property
    def schedules(self) -> Schedules:
        """Schedules of jobs."""
        from draftsman.schedules.service.schedules import Schedules

        services = self.templates, self.request_checks, self.submissions
        return Schedules(self.db, self.policy, self.settings, *services)

    @cached_property
    def schemas(self) -> SchemaChecker:
        """Checks of JSON Schema in a child process."""
        from draftsman.json_schemas.checker import SchemaChecker

        return SchemaChecker()

    def claim(self, worker: UUID, queues: Sequence[str]) -> Claim:
        """Return the claim service of a worker."""
        from draftsman.jobs.runs.service.claim import Claim

        return Claim(
            self.db,
            worker,
            queues,
            limited=bool(self.settings.limits.rules()),
            lease=self.settings.worker.lease,
        )

    def worker_process(
        self,
        handlers: Mapping[str, Handler],
        *,
        queues: Sequence[str] | None = None,
        slots: int | None = None,
        leader: bool = True,
    ) -> WorkerProcess:
        """Return a worker with its loops for this process."""
        from draftsman.worker.execution import WorkerServices
        from draftsman.worker.worker_process import WorkerProcess

        worker = new_id()
        served_queues = queues or self.settings.worker.queues
        claim = self.claim(worker, served_queues)
        revive = self.revive if self.embedded else None
        saved = self.checkpoints, self.changes, self.activity, self.run_messages, self.attachments
        runs = *saved, self.model_calls, self.asking, self.questions, self.settlement
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
        from draftsman.deliveries.dispatcher import DeliveryDispatcher

        used = channels, self.settings.notifications, sender
        return DeliveryDispatcher(self.delivery_sender, *used)

    def delivery_process(self, channels: Sequence[Channel]) -> DeliveryProcess:
        """Return the delivery process of these channels, for a process without a worker."""
        from draftsman.deliveries.process import DeliveryProcess

        used = self.settings.notifications, self.db
        return DeliveryProcess(self.delivery_sender, channels, *used)

    def listener(self, on_notification: Callable[[str, str], None]) -> NotificationListener:
        """Return a listener that passes channel and payload of each notification."""
        from draftsman.database.notification_listener import NotificationListener

        return NotificationListener(self.db, on_notification)

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
    db = Database(
        url,
        settings.database,
        enums=ENUMS,
        session_url=configured.session_url(settings, url),
        read_only=read_only,
        pooled=pooled,
    )
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
