"""What a run writes on its way, and reads of what earlier runs wrote: the base of its context."""

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
    """What a run may use of its worker."""

    @property
    def settings(self) -> Settings:
        """The worker's configuration."""

    @property
    def checkpoints(self) -> Checkpoints:
        """What runs save on their way."""

    @property
    def questions(self) -> Questions:
        """Asking and answering."""

    @property
    def settle(self) -> Settlement:
        """How runs end."""

    @property
    def outbox(self) -> Notifier:
        """Messages to people."""

    @property
    def repos(self) -> Repos:
        """The repositories that are known."""

    @property
    def schemas(self) -> SchemaChecker:
        """The child processes that check JSON Schemas."""


class RunProgress:
    """The progress of one run. Every method that writes raises LeaseLost once the job is lost."""

    stopping: str | None = None
    """Why the run has to end, once it has: `canceled`, `shutdown`, `lost` or `timeout`."""
    ending: bool = False
    """Set while it ends the processes that it started: it must not be canceled again then."""

    def __init__(self, job: ClaimedJob, services: RunServices) -> None:
        self.job = job
        self._services = services
        self._event = 0
        """The newest event of the run that is known to be stored."""

    @property
    def settings(self) -> Settings:
        """The worker's configuration."""
        return self._services.settings

    @property
    def cancelled(self) -> bool:
        """Whether the run should end soon; the handler's task is cancelled as well."""
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
        """Return every step of the job so far that this owner wrote, by its key."""
        steps = await self._wait(self._services.checkpoints.steps, self.job.number)
        return {step.key: step for step in steps if step.owner == owner}

    async def note_step(
        self, key: str, invocation_id: str | None = None, owner: Owner = Owner.HANDLER
    ) -> Step:
        """Note that an effect is about to happen; return the step, of an earlier run maybe.

        Raises UsageError for a key of the other owner.
        """
        begin = self._services.checkpoints.begin_step
        return (await self._wait(begin, self.job.lease, key, invocation_id, owner))[0]

    async def finish_step(self, key: str, result: Any, owner: Owner = Owner.HANDLER) -> None:
        """Record the result of a noted effect."""
        finish = self._services.checkpoints.finish_step
        await self._wait(finish, self.job.lease, key, result, owner)

    async def event(
        self, kind: str, payload: dict[str, Any] | None = None, owner: Owner = Owner.HANDLER
    ) -> None:
        """Append to the job's events; a payload over 10 KB is cut and says so.

        Raises UsageError for a kind that draftsman itself writes.
        """
        reserved_names.check_event_kind(kind, owner)
        known, sent = self._event, False

        async def send() -> int:
            nonlocal sent
            again, sent = sent, True
            return await self._services.checkpoints.event(
                self.job.lease, kind, payload or {}, unless_after=known if again else None
            )

        self._event = max(self._event, await self._wait(send))

    async def artifact(self, name: str, data: bytes, kind: str = "file") -> None:
        """Keep a file of at most 25 MB with the job, of kind `file` or `report`.

        Raises UsageError for the names and kinds of draftsman's own artifacts.
        """
        reserved_names.check_artifact(name, kind, Owner.HANDLER)
        await self._wait(self._services.checkpoints.artifact, self.job.lease, name, kind, data)

    async def patch(self, data: bytes) -> None:
        """Keep what the run changed so far: the patch that people see with its question, or end."""
        keep = self._services.checkpoints.artifact
        await self._wait(keep, self.job.lease, reserved_names.PATCH, "patch", data)

    async def has_patch(self) -> bool:
        """Return whether a run of the job left a patch."""
        return await self._wait(self._services.checkpoints.patch, self.job.number) is not None

    async def spend(self, quota: Quota, size: int, limit: QuotaLimit) -> bool:
        """Count a message of an agent, and its bytes, against a quota of the job.

        Return whether it is within the limit; one that is not is not counted.
        """
        spend = self._services.checkpoints.spend
        return await self._wait(spend, self.job.lease, quota, size, limit)

    async def usage(self, amounts: dict[str, Any]) -> None:
        """Record what the run used so far."""
        await self._wait(self._services.checkpoints.usage, self.job.lease, amounts)

    async def _wait(self, call: Callable[P, Awaitable[T]], *args: P.args, **more: P.kwargs) -> T:
        """Return what the call returns, once there is a database."""
        work = partial(call, *args, **more)
        worker = self.settings.worker
        return await wait_for_database(self.job.name, work, worker, lambda: self.cancelled)
