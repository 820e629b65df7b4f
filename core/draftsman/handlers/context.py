"""What a handler is given: the job, its memory, and people to ask."""

from __future__ import annotations

import inspect
import math
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any, ParamSpec, Protocol, TypeVar, overload

from draftsman.domain.ids import new_id
from draftsman.domain.outcome import Parked, Snooze
from draftsman.domain.question import (
    Answered,
    Ask,
    Choice,
    NoAnswer,
    OnDeny,
    OnExpire,
    QuestionKind,
)
from draftsman.domain.retry import RetryPolicy
from draftsman.domain.run import Claimed
from draftsman.errors import UsageError
from draftsman.handlers.asking import answer_of, build
from draftsman.handlers.log import RunLog
from draftsman.handlers.patience import patiently
from draftsman.outbound.limit import limit
from draftsman.ports import Notify
from draftsman.services.checkpoint import Checkpoints
from draftsman.services.questions import LONGEST, Questions
from draftsman.services.repos import Repos
from draftsman.services.settle import Settle
from draftsman.settings import Settings
from draftsman.store.progress import Step

P = ParamSpec("P")
T = TypeVar("T")


class Services(Protocol):
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
    def settle(self) -> Settle:
        """How runs end."""

    @property
    def outbox(self) -> Notify:
        """Messages to people."""

    @property
    def repos(self) -> Repos:
        """The repositories that are known."""


class RunContext:
    """One run of one job. Every method that writes raises LeaseLost once the run lost its job.

    Every method waits for a database that is away, while the run may still own its job. `job` is
    the claimed job.
    """

    parked = False
    """Whether the run wrote that it waits: it holds no lease any more, and only unwinds."""
    stopping: str | None = None
    """Why the run has to end, once it has: `canceled`, `shutdown`, `lost` or `timeout`."""

    def __init__(
        self, job: Claimed, services: Services, deadline: float, limits: RetryPolicy | None = None
    ) -> None:
        self.job = job
        self.limits = limits or RetryPolicy()
        """The time-outs of this job, each cut to the one around it."""
        self.deadline = deadline
        """Seconds of running time that were left when the run started."""
        self._services = services
        self._log: RunLog | None = None
        self._on_beat: tuple[Callable[[], None], ...] = ()
        self._event = 0
        """The newest event of the run that is known to be stored."""

    @property
    def settings(self) -> Settings:
        """The worker's configuration."""
        return self._services.settings

    @property
    def repos(self) -> Repos:
        """The repositories that are known."""
        return self._services.repos

    @property
    def cancelled(self) -> bool:
        """Whether the run should end soon; the handler's task is cancelled as well."""
        return self.stopping is not None

    def on_beat(self, call: Callable[[], None]) -> None:
        """Call back after each heartbeat that proved the lease."""
        self._on_beat += (call,)

    def beat(self) -> None:
        """Tell those who asked that the lease holds."""
        for call in self._on_beat:
            call()

    async def saved(self) -> dict[str, Any] | None:
        """Return the newest checkpoint's data."""
        return (await self.saved_work())[0]

    async def saved_work(self) -> tuple[dict[str, Any] | None, bytes | None]:
        """Return the newest checkpoint's data and its work bundle."""
        return await self._wait(self._services.checkpoints.latest, self.job.number)

    async def checkpoint(self, data: dict[str, Any], bundle: bytes | None = None) -> None:
        """Save state for a later run; raises UsageError over 1 MiB of JSON."""
        await self._wait(self._services.checkpoints.save, self.job.lease, data, bundle)

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
        `step_timeout` then.
        """
        own = str(new_id())
        known = await self.note_step(key, own)
        if known.status == "done":
            return known.result
        result = None
        async with limit("step", self.limits.step_timeout, f"step {key!r} went on"):
            if known.invocation_id != own and lookup is not None:
                result = await _awaited(lookup(known.invocation_id))
            if result is None:
                result = await _awaited(effect(known.invocation_id))
        await self.finish_step(key, result)
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
        return await self.put(
            build(
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
        decided = await self.put(
            build(
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

    async def answered(self, item: Ask) -> Answered | NoAnswer | None:
        """Return what is already known for this question; None when nobody was asked it."""
        known = await self._wait(self._services.questions.of_key, self.job.number, item.key)
        if known is None or known.digest != item.digest:
            return None
        return answer_of(known)

    async def answers(self) -> dict[str, Answered | NoAnswer]:
        """Return every answer of the job so far that still counts, by its key."""
        asked, _ = await self._wait(self._services.questions.of_job, self.job.number)
        known = {item.key: answer_of(item) for item in asked if item.status != "superseded"}
        return {key: answer for key, answer in known.items() if answer is not None}

    async def steps(self) -> dict[str, Step]:
        """Return every step of the job so far, by its key."""
        steps = await self._wait(self._services.checkpoints.steps, self.job.number)
        return {step.key: step for step in steps}

    async def note_step(self, key: str, invocation_id: str | None = None) -> Step:
        """Note that an effect is about to happen; return the step, of an earlier run maybe."""
        begin = self._services.checkpoints.begin_step
        return (await self._wait(begin, self.job.lease, key, invocation_id))[0]

    async def finish_step(self, key: str, result: Any) -> None:
        """Record the result of a noted effect."""
        await self._wait(self._services.checkpoints.finish_step, self.job.lease, key, result)

    def check(self, item: Ask) -> None:
        """Raise UsageError for a question that would be refused."""
        self._services.questions.check(item, self.job.invoker_id)

    async def put(self, item: Ask) -> Answered | NoAnswer:
        """Return what is known for this question, or ask it and park."""
        if (known := await self.answered(item)) is not None:
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
        at = datetime.fromisoformat(await self.step(f"sleep:{key}", lambda _: self._due(until)))
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

    async def event(self, kind: str, payload: dict[str, Any] | None = None) -> None:
        """Append to the job's trail; a payload over 10 KB is cut and says so."""
        known, sent = self._event, False

        async def send() -> int:
            nonlocal sent
            again, sent = sent, True
            return await self._services.checkpoints.event(
                self.job.lease, kind, payload or {}, unless_after=known if again else None
            )

        self._event = max(self._event, await self._wait(send))

    async def artifact(self, name: str, data: bytes, kind: str = "file") -> None:
        """Keep a file of at most 25 MB with the job."""
        await self._wait(self._services.checkpoints.artifact, self.job.lease, name, kind, data)

    async def usage(self, amounts: dict[str, Any]) -> None:
        """Record what the run used so far."""
        await self._wait(self._services.checkpoints.usage, self.job.lease, amounts)

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
        await lines.room()

    def log(self, text: str) -> None:
        """Add to the run's log; `draftsman logs -f` shows it within about a second."""
        self._lines().write(text)

    @property
    def wrote(self) -> bool:
        """Whether there is a log to close."""
        return self._log is not None

    async def close(self) -> None:
        """Store what is left of the log, while the run still may."""
        if self._log is not None:
            await self._log.close()

    async def _wait(self, call: Callable[P, Awaitable[T]], *args: P.args, **more: P.kwargs) -> T:
        """Return what the call returns, once there is a database."""
        work = partial(call, *args, **more)
        worker = self.settings.worker
        return await patiently(self.job.name, work, worker, lambda: self.cancelled)

    def _lines(self) -> RunLog:
        if self._log is None:
            self._log = RunLog(self._services.checkpoints, self.job.lease)
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
    if not (math.isfinite(seconds) and seconds <= LONGEST):
        raise UsageError("sleep takes at most 366 days")
