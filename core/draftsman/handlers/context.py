"""What a handler is given: the job, its memory, and people to ask."""

from __future__ import annotations

import inspect
import math
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from typing import Any, ParamSpec, TypeVar, overload

from draftsman.domain import reserved_names
from draftsman.domain.ids import new_id
from draftsman.domain.outcome import Parked, Snooze
from draftsman.domain.question import (
    Answered,
    Choice,
    NoAnswer,
    OnDeny,
    OnExpire,
    QuestionKind,
    QuestionSpec,
)
from draftsman.domain.reserved_names import Owner
from draftsman.domain.retries.retry_policy import RetryPolicy
from draftsman.domain.run import ClaimedJob
from draftsman.errors import UsageError
from draftsman.handlers.print_capture import PrintCapture
from draftsman.handlers.question_mapping import build_ask, to_answer
from draftsman.handlers.run_log import RunLog
from draftsman.handlers.run_progress import RunProgress, RunServices
from draftsman.outbound.timeouts import time_limit
from draftsman.schemas.checker import SchemaChecker
from draftsman.services.questions import MAX_TIMEOUT
from draftsman.services.repos import Repos

P = ParamSpec("P")
T = TypeVar("T")


class RunContext(RunProgress):
    """One run of one job. Every method that writes raises LeaseLost once the run lost its job.

    Every method waits for a database that is away, while the run may still own its job. `job` is
    the claimed job.
    """

    parked = False
    """Whether the run wrote that it waits: it holds no lease any more, and only unwinds."""

    def __init__(
        self,
        job: ClaimedJob,
        services: RunServices,
        deadline: float,
        limits: RetryPolicy | None = None,
    ) -> None:
        super().__init__(job, services)
        self.limits = limits or RetryPolicy()
        """The time-outs of this job, each cut to the one around it."""
        self.deadline = deadline
        """Seconds of running time that were left when the run started."""
        self._log: RunLog | None = None
        self._prints: PrintCapture | None = None
        self._on_beat: tuple[Callable[[], None], ...] = ()

    @property
    def repos(self) -> Repos:
        """The repositories that are known."""
        return self._services.repos

    @property
    def schemas(self) -> SchemaChecker:
        """The child processes that check JSON Schemas."""
        return self._services.schemas

    def on_heartbeat(self, call: Callable[[], None]) -> None:
        """Call back after each heartbeat that proved the lease."""
        self._on_beat += (call,)

    def beat(self) -> None:
        """Tell those who asked that the lease holds."""
        for call in self._on_beat:
            call()

    @overload
    async def step(
        self,
        key: str,
        effect: Callable[[str], Awaitable[T]],
        lookup: Callable[[str], Awaitable[T | None]] | None = None,
    ) -> T: ...

    @overload
    async def step(
        self,
        key: str,
        effect: Callable[[str], T],
        lookup: Callable[[str], T | None] | None = None,
    ) -> T: ...

    async def step(
        self,
        key: str,
        effect: Callable[[str], Any],
        lookup: Callable[[str], Any] | None = None,
    ) -> Any:
        """Make an effect once: a later run gets the recorded result.

        `effect`, a coroutine function or a plain one, takes the invocation id, the same in every
        run, to carry to the outside. When an earlier run died between the effect and its record,
        `lookup` is asked first. Both together may take the job's `step_timeout`; raises Failure
        `step_timeout` then, and UsageError for a key that begins with `agent:` or `sleep:`.
        """
        return await self._step(key, effect, lookup, Owner.HANDLER)

    async def worker_step(self, key: str, effect: Callable[[str], Any]) -> Any:
        """Make an effect of the worker itself once; no handler and no agent can write its key."""
        return await self._step(key, effect, None, Owner.WORKER)

    async def _step(
        self,
        key: str,
        effect: Callable[[str], Any],
        lookup: Callable[[str], Any] | None,
        owner: Owner,
    ) -> Any:
        own = str(new_id())
        known = await self.note_step(key, own, owner)
        if known.status == "done":
            return known.result
        result = None
        async with time_limit("step", self.limits.step_timeout, f"step {key!r} went on"):
            if known.invocation_id != own and lookup is not None:
                result = await _awaited(lookup(known.invocation_id))
            if result is None:
                result = await _awaited(effect(known.invocation_id))
        await self.finish_step(key, result, owner)
        return result

    async def ask(
        self,
        key: str,
        text: str,
        *,
        choices: Sequence[str | Choice | dict[str, Any]] = (),
        freeform: bool = False,
        context: str | None = None,
        expires_in: float | None = None,
        never_expires: bool = False,
        on_expire: OnExpire | str = OnExpire.EXPIRE,
        default: str | None = None,
        escalate_to: str | None = None,
    ) -> Answered | NoAnswer:
        """Return the answer to this question, or park the run until there is one.

        Parking frees the slot and raises Parked through the handler; the job runs again from the
        top, where this call returns. Times in seconds. With `on_expire="escalate"` the group or
        person `escalate_to` (unset: as configured) is asked too, once, for as long again. Raises
        UsageError.
        """
        reserved_names.check_key(key, Owner.HANDLER, "question")
        return await self.ask_or_park(
            build_ask(
                key=key,
                text=text,
                choices=tuple(choices),
                freeform=freeform,
                context=context,
                expires_in=expires_in,
                never_expires=never_expires,
                on_expire=on_expire,
                default=default,
                escalate_to=escalate_to,
            )
        )

    async def approve(
        self,
        key: str,
        text: str,
        *,
        action: dict[str, Any] | None = None,
        approvers: Sequence[str] | None = None,
        quorum: int = 1,
        context: str | None = None,
        expires_in: float | None = None,
        on_expire: OnExpire | str = OnExpire.EXPIRE,
        escalate_to: str | None = None,
        on_deny: OnDeny | str = OnDeny.FAIL,
    ) -> Answered:
        """Return the decision of this gate, or park the run until there is one.

        The decision is bound to `text` and `action`: change them and people are asked again. A
        denial fails the job, unless `on_deny` is `continue`. `on_expire` is `expire` or `escalate`.
        """
        reserved_names.check_key(key, Owner.HANDLER, "gate")
        decided = await self.ask_or_park(
            build_ask(
                key=key,
                kind=QuestionKind.APPROVAL,
                text=text,
                action=action,
                approvers=None if approvers is None else tuple(approvers),
                quorum=quorum,
                context=context,
                expires_in=expires_in,
                on_expire=on_expire,
                escalate_to=escalate_to,
                on_deny=on_deny,
            )
        )
        if isinstance(decided, NoAnswer):  # a gate cannot go on without a decision
            raise Parked
        return decided

    async def find_answer(
        self, item: QuestionSpec, patch: Callable[[], Awaitable[str | None]] | None = None
    ) -> Answered | NoAnswer | None:
        """Return what is already known for this question; None when nobody was asked it.

        A gate that showed a patch counts only for the tree of that patch: `patch` returns the
        SHA-256 of the patch that would be shown now.
        """
        known = await self._wait(self._services.questions.of_key, self.job.number, item.key)
        if known is None or known.digest != item.digest:
            return None
        bound = known.patch_sha256 if known.kind is QuestionKind.APPROVAL else None
        if bound is not None and patch is not None and await patch() != bound:
            return None
        return to_answer(known)

    async def answers(self) -> dict[str, Answered | NoAnswer]:
        """Return every answer of the job so far that still counts, by its key."""
        asked, _ = await self._wait(self._services.questions.of_job, self.job.number)
        known = {item.key: to_answer(item) for item in asked if item.status != "superseded"}
        return {key: answer for key, answer in known.items() if answer is not None}

    def check(self, item: QuestionSpec) -> None:
        """Raise UsageError for a question that would be refused."""
        self._services.questions.check(item, self.job.invoker_id)

    async def ask_or_park(
        self, item: QuestionSpec, patch: Callable[[], Awaitable[str | None]] | None = None
    ) -> Answered | NoAnswer:
        """Return what is known for this question, or ask it and park; `patch` as for `answered`."""
        if (known := await self.find_answer(item, patch)) is not None:
            return known
        await self._wait(self.close)
        given = self.job.overrides.get("answers")
        answer = given.get(item.key) if isinstance(given, dict) else None
        await self._wait(
            self._services.questions.ask,
            self.job.lease,
            item,
            given=None if answer is None else str(answer),
            invoker=self.job.invoker_id,
        )
        self.parked = True
        raise Parked

    async def sleep(self, key: str, until: datetime | timedelta | float) -> None:
        """Park until a time, or for so long; holds no slot and spends nothing."""
        _check_time(until)
        noted = await self.worker_step(f"{reserved_names.SLEEP}{key}", lambda _: self._due(until))
        at = datetime.fromisoformat(noted)
        if at > await self._wait(self._services.checkpoints.now):
            await self._wait(self.close)
            await self._wait(self._services.settle.outcome, self.job, Snooze(at))
            self.parked = True
            raise Parked

    async def _due(self, until: datetime | timedelta | float) -> str:
        if isinstance(until, datetime):
            return until.isoformat()
        length = until if isinstance(until, timedelta) else timedelta(seconds=until)
        return (await self._wait(self._services.checkpoints.now) + length).isoformat()

    async def notify(
        self, text: str, targets: Sequence[str] = (), *, key: str | None = None
    ) -> list[int]:
        """Tell these targets, or the job's own; return the numbers of the deliveries.

        Once for a key, such as a step's invocation id. Raises UsageError.
        """
        notify, key = self._services.outbox.notify, key or str(new_id())
        return await self._wait(notify, self.job.lease, key, targets, text)

    async def log_stream(self, text: str) -> None:
        """Add a piece of another program's output as it is; waits while much is on its way."""
        lines = self._lines()
        lines.append(text)
        await lines.wait_for_room()

    def log(self, text: str) -> None:
        """Add to the run's log; `draftsman logs -f` shows it within about a second."""
        self._lines().write(text)

    def prints(self) -> PrintCapture:
        """Return a block that adds what the handler prints in it to the run's log."""
        self._prints = PrintCapture(self.log)
        return self._prints

    @property
    def has_open_log(self) -> bool:
        """Whether there is a log to close."""
        return self._log is not None

    async def close(self) -> None:
        """Store what is left of the log, while the run still may."""
        if self._prints is not None:
            self._prints.flush()
        if self._log is not None:
            await self._log.close()

    def _lines(self) -> RunLog:
        if self._log is None:
            quotas = self.settings.quotas
            self._log = RunLog(self._services.checkpoints, self.job.lease, quotas)
        return self._log


async def _awaited(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value


def _check_time(until: datetime | timedelta | float) -> None:
    """Raise UsageError for a time that cannot be meant."""
    if isinstance(until, datetime):
        if until.tzinfo is None:
            raise UsageError("sleep until a time with a time zone: datetime.now(UTC) + …")
        return
    seconds = until.total_seconds() if isinstance(until, timedelta) else until
    if not (math.isfinite(seconds) and seconds <= MAX_TIMEOUT):
        raise UsageError("sleep takes at most 366 days")
