"""Progress of a run: checkpoints, steps, events, artifacts and usage."""

from __future__ import annotations

import warnings
from typing import Any

from draftsman.domain import reserved_names
from draftsman.domain.read_models import Step
from draftsman.domain.reserved_names import Owner
from draftsman.handlers.worker_run import WorkerRun
from draftsman.settings import Settings


class RunProgress:
    """The progress of a run. Methods that write raise LeaseLost once the lease is lost."""

    def __init__(self, run: WorkerRun) -> None:
        self.job = run.job
        self._run = run
        self._services = run.services
        self._last_event = 0
        """Id of the newest event of the run that the database confirmed."""

    @property
    def settings(self) -> Settings:
        """The worker's configuration."""
        return self._services.settings

    @property
    def stopping(self) -> str | None:
        """Why the run has to end: `canceled`, `shutdown`, `lost` or `timeout`; else None."""
        return self._run.stopping

    @property
    def canceled(self) -> bool:
        """Whether the run should end soon; the handler's task is canceled as well."""
        return self._run.stopping is not None

    @property
    def cancelled(self) -> bool:
        """Deprecated alias of `canceled`."""
        warnings.warn(
            "ctx.cancelled is deprecated; use ctx.canceled", DeprecationWarning, stacklevel=2
        )
        return self.canceled

    async def saved(self) -> dict[str, Any] | None:
        """Return the newest checkpoint's data."""
        return (await self.saved_work())[0]

    async def saved_work(self) -> tuple[dict[str, Any] | None, bytes | None]:
        """Return the newest checkpoint's data and its work bundle."""
        return await self._run.wait(self._services.checkpoints.latest, self.job.number)

    async def checkpoint(self, data: dict[str, Any], bundle: bytes | None = None) -> None:
        """Save state for a later run; raises UsageError over 1 MiB of JSON."""
        await self._run.wait(self._services.checkpoints.save, self.job.lease, data, bundle)

    async def steps(self, owner: Owner = Owner.HANDLER) -> dict[str, Step]:
        """Return the steps of the job that this owner wrote, by key."""
        steps = await self._run.wait(self._services.checkpoints.steps, self.job.number)
        return {step.key: step for step in steps if step.owner == owner}

    async def note_step(
        self, key: str, invocation_id: str | None = None, owner: Owner = Owner.HANDLER
    ) -> Step:
        """Record that an effect is about to happen; return the step, perhaps of an earlier run.

        Raises UsageError for a key that is reserved for another owner.
        """
        return await self._run.note_step(key, invocation_id, owner)

    async def finish_step(self, key: str, result: Any, owner: Owner = Owner.HANDLER) -> None:
        """Record the result of a step."""
        await self._run.finish_step(key, result, owner)

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

        self._last_event = max(self._last_event, await self._run.wait(send))

    async def artifact(self, name: str, data: bytes, kind: str = "file") -> None:
        """Store a file of at most 25 MB with the job, of kind `file` or `report`.

        Raises UsageError for names and kinds that are reserved for draftsman.
        """
        reserved_names.check_artifact(name, kind, Owner.HANDLER)
        await self._run.wait(self._services.checkpoints.artifact, self.job.lease, name, kind, data)

    async def patch(self, data: bytes) -> None:
        """Store the changes of the run so far; shown with a question or the result."""
        store = self._services.checkpoints.artifact
        await self._run.wait(store, self.job.lease, reserved_names.PATCH, "patch", data)

    async def has_patch(self) -> bool:
        """Return whether a run of the job stored a patch."""
        return await self._run.wait(self._services.checkpoints.patch, self.job.number) is not None

    async def usage(self, amounts: dict[str, Any]) -> None:
        """Record the usage of the run so far."""
        await self._run.wait(self._services.checkpoints.usage, self.job.lease, amounts)
