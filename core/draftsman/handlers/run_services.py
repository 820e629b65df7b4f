"""The services of a worker that its runs use."""

from __future__ import annotations

from typing import Protocol

from draftsman.agent_runs.activity.service import ActivityStream
from draftsman.agent_runs.changes.service import Changes
from draftsman.costs.service import ModelCalls
from draftsman.deliveries.service.outbox import Outbox
from draftsman.handlers.threads import ThreadLimit
from draftsman.jobs.control.service.messages import RunMessages
from draftsman.jobs.requests.service.attachments import Attachments
from draftsman.jobs.runs.service.checkpoints import Checkpoints
from draftsman.jobs.runs.service.settlement import Settlement
from draftsman.json_schemas.checker import SchemaChecker
from draftsman.questions.service.asking import Asking
from draftsman.questions.service.questions import Questions
from draftsman.repos.service import Repos
from draftsman.settings import Settings
from draftsman.workflows.service.workflows import Workflows


class RunServices(Protocol):
    """The services of the worker that a run may use."""

    @property
    def settings(self) -> Settings:
        """The worker's configuration."""

    @property
    def checkpoints(self) -> Checkpoints:
        """Saved progress of runs."""

    @property
    def changes(self) -> Changes:
        """Patches of runs."""

    @property
    def activity(self) -> ActivityStream:
        """Activity of agents."""

    @property
    def run_messages(self) -> RunMessages:
        """Messages of people to the job of a run."""

    @property
    def attachments(self) -> Attachments:
        """Files of people."""

    @property
    def model_calls(self) -> ModelCalls:
        """Money and tokens of model calls."""

    @property
    def asking(self) -> Asking:
        """Asking of questions."""

    @property
    def questions(self) -> Questions:
        """Questions and answers."""

    @property
    def settlement(self) -> Settlement:
        """Settlement of runs."""

    @property
    def outbox(self) -> Outbox:
        """Notifications."""

    @property
    def repos(self) -> Repos:
        """The registered repositories."""

    @property
    def schemas(self) -> SchemaChecker:
        """The checker of JSON Schemas."""

    @property
    def thread_limit(self) -> ThreadLimit:
        """The limit of threads."""

    @property
    def workflows(self) -> Workflows:
        """Jobs that wait for other jobs."""
