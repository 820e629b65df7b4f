"""Progress of a run: checkpoints, steps, events, artifacts and usage."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, ParamSpec, Protocol, TypeVar

from draftsman.domain import reserved_names
from draftsman.domain.quota import Quota, QuotaLimit
from draftsman.domain.reserved_names import Owner
from draftsman.domain.run import ClaimedJob
from draftsman.handlers.db_retry import wait_for_database
from draftsman.ports import Notifier
from draftsman.schemas.checker import SchemaChecker
from draftsman.services.questions import Questions
from draftsman.services.repos import Repos
from draftsman.services.runs.checkpoints import Checkpoints
from draftsman.services.runs.settlement import Settlement
from draftsman.settings import Settings
from draftsman.store.checkpoints import Step

P = ParamSpec("P")
T = TypeVar("T")


class RunServices(Protocol):
    """The services of the worker that a run may use."""

    @property
    def settings(self) -> Settings:
        """The worker's configuration."""

    @property
    def checkpoints(self) -> Checkpoints:
        """Saved progress of runs."""

    @property
    def questions(self) -> Questions:
        """Questions and answers."""

    @property
    def settle(self) -> Settlement:
        """Settlement of runs."""

    @property
    def outbox(self) -> Notifier:
        """Notifications."""

    @property
    def repos(self) -> Repos:
        """The registered repositories."""

    @property
    def schemas(self) -> SchemaChecker:
        """The checker of JSON Schemas."""


class RunProgress:
    """The progress of a run. Methods that write raise LeaseLost once the lease is lost."""

    stopping: str | None = None
    """Why the run has to end: `canceled`, `shutdown`, `lost` or `timeout`; None if it need not."""
    ending: bool = False
    """Whether the run is stopping its processes, during which it must not be canceled again."""

    def __init__(self, job: ClaimedJob, services: RunServices) -> None:
        self.job = job
        self._services = services
        self._last_event = 0
        """Id of the newest event of the run that the database confirmed."""

    @property
    def settings(self) -> Settings:
        """The worker's configuration."""
        return self._services.settings

    @property
    def cancelled(self) -> bool:
        """Whether the run should end soon; the handler's task is canceled as well."""
        return self.stopping is not None

    async def saved(self) -> dict[str, Any] | None:
        """Return the newest checkpoint's data."""
        return (await self.saved_work())[0]

    async def saved_work(self) -> tuple[dict[str, Any] | None, bytes | None]:
        """Return the newest checkpoint's data and its work bundle."""
        return await self._wait(self._services.checkpoints.latest, self.job.number)

    async def checkpoint(self, data: dict[str, Any], bundle: bytes | None = None) -> None:
        """Save state for a later run; raises UsageError over 1 MiB of JSON."""
        await self._wait(self._services.checkpoints.save, self.job.lease, data, bundle)

    async def steps(self, owner: Owner = Owner.HANDLER) -> dict[str, Step]:
        """Return the steps of the job that this owner wrote, by key."""
        steps = await self._wait(self._services.checkpoints.steps, self.job.number)
        return {step.key: step for step in steps if step.owner == owner}

    async def note_step(
        self, key: str, invocation_id: str | None = None, owner: Owner = Owner.HANDLER
    ) -> Step:
        """Record that an effect is about to happen; return the step, perhaps of an earlier run.

        Raises UsageError for a key that is reserved for another owner.
        """
        begin = self._services.checkpoints.begin_step
        return (await self._wait(begin, self.job.lease, key, invocation_id, owner))[0]

    async def finish_step(self, key: str, result: Any, owner: Owner = Owner.HANDLER) -> None:
        """Record the result of a step."""
        finish = self._services.checkpoints.finish_step
        await self._wait(finish, self.job.lease, key, result, owner)

    async def event(
        self, kind: str, payload: dict[str, Any] | None = None, owner: Owner = Owner.HANDLER
    ) -> None:
        """Append an event to the job; a payload over 10 KB is truncated and marked so.

        Raises UsageError for a kind that is reserved for draftsman.
        """
        reserved_names.check_event_kind(kind, owner)
        last_event, sent = self._last_event, False

        async def send() -> int:
            nonlocal sent
            is_retry, sent = sent, True
            return await self._services.checkpoints.event(
                self.job.lease, kind, payload or {}, unless_after=last_event if is_retry else None
            )

        self._last_event = max(self._last_event, await self._wait(send))

    async def artifact(self, name: str, data: bytes, kind: str = "file") -> None:
        """Store a file of at most 25 MB with the job, of kind `file` or `report`.

        Raises UsageError for names and kinds that are reserved for draftsman.
        """
        reserved_names.check_artifact(name, kind, Owner.HANDLER)
        await self._wait(self._services.checkpoints.artifact, self.job.lease, name, kind, data)

    async def patch(self, data: bytes) -> None:
        """Store the changes of the run so far; shown with a question or the result."""
        store = self._services.checkpoints.artifact
        await self._wait(store, self.job.lease, reserved_names.PATCH, "patch", data)

    async def has_patch(self) -> bool:
        """Return whether a run of the job stored a patch."""
        return await self._wait(self._services.checkpoints.patch, self.job.number) is not None

    async def spend(self, quota: Quota, size: int, limit: QuotaLimit) -> bool:
        """Count a message of an agent, and its bytes, against a quota of the job.

        Return whether it is within the limit; a message over the limit is not counted.
        """
        spend = self._services.checkpoints.spend
        return await self._wait(spend, self.job.lease, quota, size, limit)

    async def usage(self, amounts: dict[str, Any]) -> None:
        """Record the usage of the run so far."""
        await self._wait(self._services.checkpoints.usage, self.job.lease, amounts)

    async def _wait(self, call: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """Return the result of the call; retry while the database is unreachable."""
        work = partial(call, *args, **kwargs)
        worker = self.settings.worker
        return await wait_for_database(self.job.name, work, worker, lambda: self.cancelled)
