"""The services of a worker that its runs use."""

from __future__ import annotations

from typing import Protocol

from draftsman.costs.service.budgets import ModelCalls
from draftsman.deliveries.service.outbox import Outbox
from draftsman.jobs.runs.service.checkpoints import Checkpoints
from draftsman.jobs.runs.service.settlement import Settlement
from draftsman.json_schemas.checker import SchemaChecker
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
    def model_calls(self) -> ModelCalls:
        """Money and tokens of model calls."""

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
    def workflows(self) -> Workflows:
        """Jobs that wait for other jobs."""
