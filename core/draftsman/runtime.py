"""Services of a process over one database, and their construction from the settings.

Each service is imported when it is first used: to import all of them takes longer than most
commands run.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Final
from uuid import UUID

from draftsman import version
from draftsman.basic_settings import BasicSettings
from draftsman.channels import ChannelName
from draftsman.database import migrate
from draftsman.database.database import Database
from draftsman.database.server_url import database_url, embedded_server, session_url
from draftsman.deliveries import delivery
from draftsman.ids import new_id
from draftsman.jobs import job, retries
from draftsman.jobs.job import Source
from draftsman.jobs.runs import run
from draftsman.people import visibility
from draftsman.people.actor import Actor
from draftsman.people.configuration import configured_policy, default_quiet_hours
from draftsman.people.policy import Policy
from draftsman.people.service.stored_policy import load_policy, refresh_policy
from draftsman.processes.host import login
from draftsman.questions import question
from draftsman.tracing.open_telemetry.process import tracing

if TYPE_CHECKING:
    from draftsman.agent_runs.activity.service import ActivityStream
    from draftsman.agent_runs.changes.service import Changes
    from draftsman.attention.service.acknowledgments import Acknowledgments
    from draftsman.attention.service.digests import Digests
    from draftsman.attention.service.ladders import LadderSweep
    from draftsman.attention.service.oncall import OnCall
    from draftsman.attention.service.question_figures import QuestionFigures
    from draftsman.attention.service.reminders import Reminders
    from draftsman.costs.service import Budgets, BudgetSweep, ModelCalls
    from draftsman.database.notification_listener import NotificationListener
    from draftsman.database_metrics.service import DatabaseMetrics
    from draftsman.deliveries.channel import Channel
    from draftsman.deliveries.dispatcher import DeliveryDispatcher
    from draftsman.deliveries.process import DeliveryProcess
    from draftsman.deliveries.service.dead_letters import DeadLetters
    from draftsman.deliveries.service.delivery_sender import DeliverySender
    from draftsman.deliveries.service.outbox import Outbox
    from draftsman.deliveries.service.threads import Threads
    from draftsman.deliveries.target import Targets
    from draftsman.events.service import Archives
    from draftsman.forges.follow_up_jobs.service import FollowUpSweep
    from draftsman.forges.service import ForgeEvents
    from draftsman.handlers.registry import Handler
    from draftsman.handlers.threads import ThreadLimit
    from draftsman.job_types.published.description import TypeDescription
    from draftsman.job_types.published.service import PublishedTypes
    from draftsman.jobs.control.service.control import JobControl
    from draftsman.jobs.control.service.messages import JobMessages, RunMessages
    from draftsman.jobs.details.service.finished_jobs import FinishedJobs
    from draftsman.jobs.details.service.log_feed import LogFeed
    from draftsman.jobs.details.service.read_model import ReadModel
    from draftsman.jobs.details.service.throughput import JobThroughput
    from draftsman.jobs.pending_decisions.service import PendingDecisions
    from draftsman.jobs.requests.service.attachments import Attachments
    from draftsman.jobs.requests.service.request_checks import RequestChecks
    from draftsman.jobs.requests.service.submissions import Submissions
    from draftsman.jobs.runs.job_limits import JobLimits
    from draftsman.jobs.runs.service.checkpoints import Checkpoints
    from draftsman.jobs.runs.service.claim import Claim
    from draftsman.jobs.runs.service.promotion import Promotion
    from draftsman.jobs.runs.service.settlement import Settlement
    from draftsman.jobs.runs.sweep import SweepingService
    from draftsman.json_schemas.checker import SchemaChecker
    from draftsman.people.service.people import People
    from draftsman.questions.permission_rules.service import PermissionRules
    from draftsman.questions.service.asking import Asking
    from draftsman.questions.service.expiry import Expiry
    from draftsman.questions.service.questions import Questions
    from draftsman.queues.service.queues import Queues
    from draftsman.queues.service.reservations import Reservations
    from draftsman.queues.service.sweeps import LimitSweep, PostponedWork, TypeSweep
    from draftsman.repos.service import CurrentCatalog, Repos
    from draftsman.schedules.service.declared_schedules import DeclaredSchedules
    from draftsman.schedules.service.firing import Firing
    from draftsman.schedules.service.job_forms import JobForms
    from draftsman.schedules.service.schedules import Schedules
    from draftsman.schedules.service.templates import Templates
    from draftsman.settings import Settings
    from draftsman.worker.service.dead_workers import DeadWorkers
    from draftsman.worker.service.sweeps import Sweeps
    from draftsman.worker.worker_process import WorkerProcess
    from draftsman.workflows.service.workflows import Workflows

ENUMS: Final = {
    **job.ENUMS,
    **retries.ENUMS,
    **run.ENUMS,
    **question.ENUMS,
    **delivery.ENUMS,
}
"""Enums of all packages that are types of the database."""


@dataclass(frozen=True)
class Runtime:
    """The services over one database, each made when it is first used."""

    settings: Settings
    db: Database
    embedded: bool
    policy: Policy
    viewer: Actor | None = None
    """Who reads with these services; None: draftsman itself, such as a worker."""
    shared: Runtime | None = None
    """The services of draftsman itself, of which all viewers of the process share a few."""

    def seen_by(self, viewer: Actor) -> Runtime:
        """Return services that show the viewer what they may see, and nothing else."""
        db = self.db.seen_by(partial(visibility.visible_repos, viewer))
        return replace(self, db=db, viewer=viewer, shared=self.shared or self)

    @cached_property
    def limits(self) -> JobLimits:
        """Limits of each job type, agent and tool."""
        from draftsman.jobs.runs.job_limits import configured_limits

        return configured_limits(self.settings)

    @cached_property
    def targets(self) -> Targets:
        """Configured targets; raises ConfigError."""
        from draftsman.deliveries.target import configured_targets

        return configured_targets(self.settings)

    @cached_property
    def schemas(self) -> SchemaChecker:
        """Checks of JSON Schema in a child process."""
        if self.shared is not None:
            return self.shared.schemas
        from draftsman.json_schemas.checker import SchemaChecker

        return SchemaChecker()

    # Requests and jobs.

    @cached_property
    def catalog(self) -> CurrentCatalog:
        """All repositories, as this process last read them."""
        if self.shared is not None:
            return self.shared.catalog
        from draftsman.repos.service import CurrentCatalog

        return CurrentCatalog(self.db)

    @cached_property
    def repos(self) -> Repos:
        """Repositories, their labels and profiles."""
        from draftsman.repos.service import Repos

        return Repos(self.db, self.policy, self.catalog, self.viewer)

    @cached_property
    def request_checks(self) -> RequestChecks:
        """Checks of requests before their submission."""
        from draftsman.jobs.requests.service.request_checks import RequestChecks

        return RequestChecks(
            db=self.db,
            settings=self.settings,
            repos=self.repos,
            embedded=self.embedded,
            published=self.published_types,
        )

    @cached_property
    def submissions(self) -> Submissions:
        """Submission of jobs."""
        from draftsman.jobs.requests.service.submissions import Submissions
        from draftsman.workflows.service.linked_requests import RequestLinks

        return Submissions(
            db=self.db,
            policy=self.policy,
            limits=self.limits,
            targets=self.targets,
            links=RequestLinks(),
            published=self.published_types,
            schemas=self.schemas,
            catalog=self.repos.catalog,
            type_warnings=self.request_checks.type_warnings,
        )

    @cached_property
    def job_forms(self) -> JobForms:
        """What people start by a form."""
        from draftsman.schedules.service.job_forms import JobForms

        return JobForms(
            templates=self.templates, published=self.published_types, checks=self.request_checks
        )

    @cached_property
    def published_types(self) -> PublishedTypes:
        """Job types that workers described."""
        from draftsman.job_types.published.service import PublishedTypes

        return PublishedTypes(self.db, self.schemas, lease=self.settings.worker.lease)

    @cached_property
    def attachments(self) -> Attachments:
        """Files that people sent with requests and messages."""
        from draftsman.jobs.requests.service.attachments import Attachments

        return Attachments(self.db)

    @cached_property
    def job_control(self) -> JobControl:
        """Cancel and retry of jobs."""
        from draftsman.jobs.control.service.control import JobControl

        return JobControl(self.db, self.policy)

    @cached_property
    def finished_jobs(self) -> FinishedJobs:
        """Retry of all jobs that match a filter."""
        from draftsman.jobs.details.service.finished_jobs import FinishedJobs

        return FinishedJobs(self.db)

    @cached_property
    def messages(self) -> JobMessages:
        """Messages of people to the agents of jobs."""
        from draftsman.jobs.control.service.messages import JobMessages

        return JobMessages(self.db, self.policy, self.questions)

    @cached_property
    def pending_decisions(self) -> PendingDecisions:
        """Answers, decisions and cancels in their undo window."""
        from draftsman.jobs.pending_decisions.service import PendingDecisions

        return PendingDecisions(
            db=self.db,
            policy=self.policy,
            questions=self.questions,
            job_control=self.job_control,
            limit=self.settings.sweeps.limit,
        )

    @cached_property
    def read_model(self) -> ReadModel:
        """Queries of jobs, events and workers."""
        from draftsman.jobs.details.service.read_model import ReadModel

        return ReadModel(self.db, lease=self.settings.worker.lease)

    @cached_property
    def throughput(self) -> JobThroughput:
        """Throughput of finished jobs."""
        from draftsman.jobs.details.service.throughput import JobThroughput

        return JobThroughput(self.db, self.read_model)

    @cached_property
    def log_feed(self) -> LogFeed:
        """Logs of jobs for people."""
        from draftsman.jobs.details.service.log_feed import LogFeed

        return LogFeed(self.read_model, self.checkpoints, self.activity)

    @cached_property
    def archives(self) -> Archives:
        """Archived months of events."""
        from draftsman.events.service import Archives

        return Archives(
            db=self.db,
            policy=self.policy,
            retention=self.settings.retention,
            folder=self.settings.retention.archive_dir or self.settings.data_dir / "archive",
            limit=self.settings.sweeps.limit,
        )

    @cached_property
    def workflows(self) -> Workflows:
        """Jobs that wait for other jobs."""
        from draftsman.workflows.service.workflows import Workflows

        return Workflows(db=self.db, settings=self.settings, repos=lambda: self.repos)

    @cached_property
    def templates(self) -> Templates:
        """Templates of jobs."""
        from draftsman.schedules.service.templates import Templates

        return Templates(
            db=self.db,
            policy=self.policy,
            settings=self.settings,
            checks=self.request_checks,
            published=self.published_types,
        )

    @cached_property
    def schedules(self) -> Schedules:
        """Schedules of jobs."""
        from draftsman.schedules.service.schedules import Schedules

        return Schedules(
            db=self.db,
            policy=self.policy,
            settings=self.settings,
            templates=self.templates,
            checks=self.request_checks,
            submissions=self.submissions,
        )

    @cached_property
    def declared_schedules(self) -> DeclaredSchedules:
        """Schedules that job types declare."""
        from draftsman.schedules.service.declared_schedules import DeclaredSchedules

        return DeclaredSchedules(self.db, self.published_types)

    @cached_property
    def firing(self) -> Firing:
        """Jobs of schedules that are due."""
        from draftsman.schedules.service.firing import Firing

        return Firing(
            db=self.db,
            policy=self.policy,
            settings=self.settings,
            templates=self.templates,
            checks=self.request_checks,
            submissions=self.submissions,
        )

    # Queues.

    @cached_property
    def queues(self) -> Queues:
        """Queues and their pauses."""
        from draftsman.queues.service.queues import Queues

        return Queues(self.db, self.policy, lease=self.settings.worker.lease)

    @cached_property
    def reservations(self) -> Reservations:
        """Jobs that reserve their queue."""
        from draftsman.queues.service.reservations import Reservations

        return Reservations(self.db, self.policy, self.submissions)

    @cached_property
    def limit_sweep(self) -> LimitSweep:
        """Places that limits have free."""
        from draftsman.queues.service.sweeps import LimitSweep

        return LimitSweep(self.db, rules=self.settings.limits.rules())

    @cached_property
    def postponed_work(self) -> PostponedWork:
        """Work that transactions left to the leader."""
        from draftsman.queues.service.sweeps import PostponedWork

        return PostponedWork(self.db)

    @cached_property
    def type_sweep(self) -> TypeSweep:
        """Jobs of types that no live worker handles."""
        from draftsman.queues.service.sweeps import TypeSweep

        return TypeSweep(
            db=self.db,
            settlement=self.settlement,
            lease=self.settings.worker.lease,
            types=self.settings.types,
        )

    @cached_property
    def budgets(self) -> Budgets:
        """Budgets with their use, and costs."""
        from draftsman.costs.service import Budgets

        return Budgets(self.db, rules=self.settings.budgets.rules())

    @cached_property
    def budget_sweep(self) -> BudgetSweep:
        """Budgets of the configuration, and reservations of lost runs."""
        from draftsman.costs.service import BudgetSweep

        return BudgetSweep(
            self.db,
            rules=self.settings.budgets.rules(),
            timezone=self.settings.budgets.timezone,
        )

    # People and questions.

    @cached_property
    def people(self) -> People:
        """People and their linked identities."""
        from draftsman.people.service.people import People

        return People(self.db, self.policy)

    @cached_property
    def questions(self) -> Questions:
        """Questions and answers."""
        from draftsman.questions.service.questions import Questions

        return Questions(self.db, self.policy)

    @cached_property
    def asking(self) -> Asking:
        """Questions that runs ask."""
        from draftsman.attention.service.ladders import LadderChoices
        from draftsman.questions.permission_rules.service import answer_by_rule
        from draftsman.questions.service.asking import Asking

        return Asking(
            db=self.db,
            policy=self.policy,
            questions=self.questions,
            expires_in=self.settings.questions.expires_in,
            escalate_to=self.settings.questions.escalate_to,
            ladders=LadderChoices(self.settings),
            answer_by_rule=answer_by_rule,
        )

    @cached_property
    def expiry(self) -> Expiry:
        """Questions whose time is over."""
        from draftsman.questions.service.expiry import Expiry

        return Expiry(self.db, limit=self.settings.sweeps.limit)

    @cached_property
    def rules(self) -> PermissionRules:
        """Permission rules."""
        from draftsman.deliveries.target import rules_target
        from draftsman.questions.permission_rules.service import PermissionRules

        target = rules_target(self.settings)
        return PermissionRules(
            db=self.db,
            policy=self.policy,
            propose_after=self.settings.rules.propose_after,
            expires_in=self.settings.rules.expires_in,
            announce=None if target is None else partial(self.outbox.announce_rule, target),
        )

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
    def database_metrics(self) -> DatabaseMetrics:
        """Metrics of queues, questions, deliveries, workers and costs."""
        from draftsman.database_metrics.service import DatabaseMetrics

        return DatabaseMetrics(self.db, self.settings.worker.lease, self.sweeps.next_due)

    async def metrics(self) -> str:
        """Return all metrics that are read from the database, for Prometheus."""
        readers = (self.figures, self.queues, self.outbox, self.database_metrics)
        return "".join([await reader.metrics() for reader in readers])

    @cached_property
    def reminders(self) -> Reminders:
        """Reminders of open questions."""
        from draftsman.attention.service.reminders import Reminders

        return Reminders(
            db=self.db,
            policy=self.policy,
            quiet=default_quiet_hours(self.settings),
            limit=self.settings.sweeps.limit,
        )

    @cached_property
    def oncall(self) -> OnCall:
        """On-call schedules."""
        from draftsman.attention.service.oncall import OnCall

        return OnCall(self.settings, self.policy)

    @cached_property
    def ladder_sweep(self) -> LadderSweep:
        """Steps of ladders that are due."""
        from draftsman.attention.service.ladders import LadderSweep

        return LadderSweep(
            db=self.db,
            policy=self.policy,
            oncall=self.oncall,
            limit=self.settings.sweeps.limit,
        )

    @cached_property
    def digests(self) -> Digests:
        """Digests of questions."""
        from draftsman.attention.service.digests import Digests

        return Digests(
            db=self.db,
            policy=self.policy,
            timezone=self.settings.questions.timezone,
            limit=self.settings.sweeps.limit,
        )

    # Deliveries, boards and forges.

    @cached_property
    def outbox(self) -> Outbox:
        """Queries and redelivery of messages."""
        from draftsman.deliveries.service.outbox import Outbox

        return Outbox(db=self.db, policy=self.policy, settings=self.settings)

    @cached_property
    def delivery_sender(self) -> DeliverySender:
        """Claims and results of deliveries."""
        from draftsman.deliveries.service.delivery_sender import DeliverySender

        return DeliverySender(
            db=self.db,
            policy=self.policy,
            settings=self.settings.notifications,
            fallback=self.targets.fallback,
        )

    @cached_property
    def dead_letters(self) -> DeadLetters:
        """Dead letters without a target."""
        from draftsman.deliveries.service.dead_letters import DeadLetters

        return DeadLetters(
            self.db,
            fallback=self.targets.fallback,
            limit=self.settings.sweeps.limit,
        )

    @cached_property
    def thread_limit(self) -> ThreadLimit:
        """The limit of the threads of runs."""
        from draftsman.handlers.threads import ThreadLimit

        return ThreadLimit(self.settings.worker.threads)

    @cached_property
    def threads(self) -> Threads:
        """Threads of chat and the jobs that they are about."""
        from draftsman.deliveries.service.threads import Threads

        return Threads(self.db)

    @cached_property
    def forge_events(self) -> ForgeEvents:
        """Events of forges, and follow-ups on pull requests."""
        from draftsman.forges.service import ForgeEvents

        return ForgeEvents(self.db)

    @cached_property
    def follow_up_sweep(self) -> FollowUpSweep:
        """Events of pull requests that become work."""
        from draftsman.forges.follow_up_jobs.service import FollowUpSweep

        return FollowUpSweep(self.db, self.policy, forges=self.settings.read_forges)

    # Runs and workers.

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
        from draftsman.agent_runs.activity.service import ActivityStream

        return ActivityStream(self.db)

    @cached_property
    def run_messages(self) -> RunMessages:
        """Messages of people, as runs give them to their agents."""
        from draftsman.jobs.control.service.messages import RunMessages

        return RunMessages(self.db)

    @cached_property
    def model_calls(self) -> ModelCalls:
        """Money and tokens of model calls."""
        from draftsman.costs.service import ModelCalls

        return ModelCalls(self.db)

    @cached_property
    def settlement(self) -> Settlement:
        """Ends of runs."""
        from draftsman.jobs.runs.service.settlement import Settlement

        return Settlement(self.db, self.limits)

    @cached_property
    def promotion(self) -> Promotion:
        """Scheduled jobs and retries that are due."""
        from draftsman.jobs.runs.service.promotion import Promotion

        return Promotion(self.db, limit=self.settings.sweeps.limit)

    @cached_property
    def dead_workers(self) -> DeadWorkers:
        """Dead workers and their jobs."""
        from draftsman.worker.service.dead_workers import DeadWorkers

        return DeadWorkers(
            self.db,
            lease=self.settings.worker.lease,
            deregister_after=self.settings.sweeps.deregister_after,
            limit=self.settings.sweeps.limit,
        )

    @cached_property
    def sweeps(self) -> Sweeps:
        """Sweeps of all services, and the lease of the leader."""
        from draftsman.worker.service.sweeps import Sweeps

        # In the order of the first run: a decision that is due comes before its question expires.
        services: tuple[SweepingService, ...] = (
            self.pending_decisions,
            self.expiry,
            self.reminders,
            self.ladder_sweep,
            self.promotion,
            self.declared_schedules,
            self.firing,
            self.follow_up_sweep,
            self.limit_sweep,
            self.budget_sweep,
            self.postponed_work,
            self.dead_workers,
            self.dead_letters,
            self.type_sweep,
            self.queues,
            self.digests,
            self.rules,
            self.archives,
        )
        return Sweeps(
            self.db,
            self.policy,
            sweeps=[sweep for service in services for sweep in service.sweeps()],
            dead_workers=self.dead_workers,
            lease=self.settings.sweeps.lease,
        )

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
        id: UUID | None = None,
        queues: Sequence[str] | None = None,
        slots: int | None = None,
        leader: bool = True,
        described: Sequence[TypeDescription] = (),
    ) -> WorkerProcess:
        """Return a worker with its loops for this process, which publishes these types.

        Without `id` it gets a new one.
        """
        from draftsman.deliveries.channels.worker_channels import target_names, worker_channels
        from draftsman.worker.execution import WorkerServices
        from draftsman.worker.worker_process import WorkerProcess

        id = id or new_id()
        served_queues = queues or self.settings.worker.queues
        channels = worker_channels(self.settings)
        services = WorkerServices(
            settings=self.settings,
            limits=self.limits,
            claim=self.claim(id, served_queues),
            checkpoints=self.checkpoints,
            changes=self.changes,
            activity=self.activity,
            run_messages=self.run_messages,
            attachments=self.attachments,
            model_calls=self.model_calls,
            asking=self.asking,
            questions=self.questions,
            settlement=self.settlement,
            outbox=self.outbox,
            repos=self.repos,
            workflows=self.workflows,
            revive=self.revive if self.embedded else None,
            schemas=self.schemas,
            thread_limit=self.thread_limit,
        )
        return WorkerProcess(
            id,
            services=services,
            db=self.db,
            handlers=handlers,
            version=version.installed(),
            queues=served_queues,
            slots=slots or self.settings.worker.slots,
            sweeps=self.sweeps if leader else None,
            targets=target_names(channels),
            described=described,
            dispatcher=partial(self.dispatcher, channels),
        )

    def dispatcher(
        self, channels: Sequence[Channel], sender: Callable[[], int | None] | None = None
    ) -> DeliveryDispatcher:
        """Return the dispatcher of these channels; `sender` returns the key of its session lock."""
        from draftsman.deliveries.dispatcher import DeliveryDispatcher

        notifications = self.settings.notifications
        return DeliveryDispatcher(self.delivery_sender, channels, notifications, sender=sender)

    def delivery_process(self, channels: Sequence[Channel]) -> DeliveryProcess:
        """Return the delivery process of these channels, for a process without a worker."""
        from draftsman.deliveries.process import DeliveryProcess

        return DeliveryProcess(
            db=self.db,
            delivery_sender=self.delivery_sender,
            channels=channels,
            settings=self.settings.notifications,
        )

    def listener(self, on_notification: Callable[[str, str], None]) -> NotificationListener:
        """Return a listener that passes channel and payload of each notification."""
        from draftsman.database.notification_listener import NotificationListener

        return NotificationListener(self.db, on_notification)

    async def revive(self) -> None:
        """Restart the embedded server if it was killed; raises EmbeddedServerError."""
        await asyncio.to_thread(embedded_server(self.settings).revive)

    async def actor(self, channel: ChannelName = Source.CLI) -> Actor:
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
    # a command that only reads a few settings records nothing
    traces = None if isinstance(settings, BasicSettings) else settings.tracing
    async with tracing(traces), _connected(settings, read_only, pooled) as runtime:
        yield runtime


@asynccontextmanager
async def _connected(settings: Settings, read_only: bool, pooled: bool) -> AsyncIterator[Runtime]:
    url, embedded = await database_url(settings, migrations=False)
    db = Database(
        url,
        settings.database,
        enums=ENUMS,
        session_url=session_url(settings, url),
        read_only=read_only,
        pooled=pooled,
    )
    try:
        prepare = partial(migrate.migrate_pending, url, read_only=read_only)
        await db.open(prepare if embedded else None)
        rt = wire(settings, db, embedded)
        imported = embedded and not read_only  # the configured people, into an embedded database
        await load_policy(rt.policy, rt.people, settings, import_people=imported)
        refresh = asyncio.create_task(refresh_policy(rt.policy, rt.people, settings))
        try:
            yield rt
        finally:
            refresh.cancel()
            if "schemas" in vars(rt):
                await rt.schemas.close()
    finally:
        await db.close()


def wire(settings: Settings, db: Database, embedded: bool) -> Runtime:
    """Build the services over an open database; raises ConfigError for an invalid target."""
    policy = configured_policy(settings)
    policy.login = login() if embedded else None
    rt = Runtime(settings, db, embedded, policy)
    checked = isinstance(settings, BasicSettings)  # its targets were checked before
    if not checked and settings.notifications.model_fields_set & {"targets", "fallback"}:
        _ = rt.targets  # reports an invalid target in every command
    return rt
