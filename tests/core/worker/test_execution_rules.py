"""Decisions of the execution of a run alone: stops, errors and repeated settlements."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from draftsman.errors import (
    DatabaseUnreachable,
    DraftsmanError,
    Failure,
    LeaseLost,
    Refused,
    UsageError,
)
from draftsman.handlers import handler_errors
from draftsman.handlers.context import RunContext
from draftsman.jobs.job import Status
from draftsman.jobs.runs.outcome import Done, Outcome, Parked
from draftsman.jobs.runs.run import ClaimedJob, Lease
from draftsman.jobs.runs.service.settlement import ERROR_LIMIT
from draftsman.settings.workers import WorkerSettings
from draftsman.worker import execution as module
from draftsman.worker.execution import FIRST_DELAY, MAX_DELAY, Deadlines, Execution
from tests.support.cases import cases

OUTAGE = DatabaseUnreachable("away")
REFUSAL = Refused("no")
BUG = ValueError("a value")
LEASE = 20.0
POLL = 5.0


class Settled:
    """The settlements of a run."""

    def __init__(self) -> None:
        self.failures: list[str] = []

    async def failure(self, job: ClaimedJob, failure: Failure) -> None:
        """Note the failure."""
        self.failures.append(str(failure))


class Side:
    """The worker's side of a run."""

    def __init__(self, *, parked: bool = False, ending: bool = False) -> None:
        self.parked = parked
        self.ending = ending
        self.stopping: str | None = None
        self.ended = 0
        self.pause = self

    async def end(self) -> None:
        """Count the ends of the pause."""
        self.ended += 1


class Task:
    """A task that counts its cancellations."""

    def __init__(self) -> None:
        self.canceled = 0

    def cancel(self) -> None:
        """Count."""
        self.canceled += 1


def make(side: Side | None = None, *, run: int = 1) -> Execution:
    """Return an execution that was started, with a side that its handler has used."""
    settings = WorkerSettings(poll=POLL, lease=LEASE, heartbeat=1)
    services = SimpleNamespace(
        settings=SimpleNamespace(worker=settings),
        limits=SimpleNamespace(of_job=lambda _: SimpleNamespace(timeout=60.0)),
        settlement=Settled(),
    )
    job = ClaimedJob([1, 7, run, "running", "noop"])
    deadlines: Any = SimpleNamespace(loop=None)
    result = Execution(
        services=cast("Any", services),
        job=job,
        handler=cast("Any", None),
        deadlines=deadlines,
        continue_in_grace=None,
    )
    result.task = cast("Any", Task())
    result._begun = True
    if side is not None:
        result._context = cast("Any", SimpleNamespace(_used_run=side, _run=side))
    return result


def cancellations(execution: Execution) -> int:
    """Return how often the task was canceled."""
    return int(cast("Any", execution.task).canceled)


async def test_a_run_has_its_task_from_its_first_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which may be a part of its start, since Python 3.12."""
    execution = make()
    execution.task = None
    tasks: list[object] = []

    async def execute() -> None:
        tasks.extend((execution.task, asyncio.current_task()))

    monkeypatch.setattr(execution, "_execute", execute)
    execution._deadlines = Deadlines(asyncio.get_running_loop())
    execution.start(lambda _: None, lambda _: None)
    assert execution.task is not None
    await execution.task
    assert tasks == [execution.task] * 2


class Writes:
    """Writes of an end, whose errors come one after the other; waits move the clock."""

    def __init__(self, patch: pytest.MonkeyPatch, execution: Execution, *errors: object) -> None:
        self.errors = list(errors)
        self.count = 0
        self.now = 0.0
        self.waits: list[float] = []
        self.refusals: list[Execution] = []
        execution._on_refusal = self.refusals.append
        loop = SimpleNamespace(time=lambda: self.now)
        execution._deadlines = cast("Any", SimpleNamespace(loop=loop))
        patch.setattr(asyncio, "sleep", self._sleep)

    async def _sleep(self, seconds: float) -> None:
        if len(self.waits) == 50:
            raise asyncio.CancelledError
        self.waits.append(seconds)
        self.now += seconds

    async def __call__(self) -> None:
        """Raise the next error."""
        self.count += 1
        assert self.count < 50, "the end is stored again and again"
        if self.errors and (error := self.errors.pop(0)) is not None:
            raise cast("BaseException", error)


async def test_an_end_is_stored_once(monkeypatch: pytest.MonkeyPatch) -> None:
    for error in (None, LeaseLost("gone")):
        run = make()
        write = Writes(monkeypatch, run, error)
        await run._settle(write)
        assert (write.count, write.waits, run.refused) == (1, [], False)


async def test_an_end_during_an_outage_is_repeated_at_each_poll(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    run = make()
    write = Writes(monkeypatch, run, *[OUTAGE] * 5)
    await run._settle(write)
    assert (write.count, write.waits, run.refused) == (6, [POLL] * 5, False)
    assert caplog.text.count("database unreachable, retrying") == 1


async def test_an_end_after_the_lease_keeps_no_slot(monkeypatch: pytest.MonkeyPatch) -> None:
    run = make()
    write = Writes(monkeypatch, run, *[OUTAGE] * 7)
    await run._settle(write)
    delays = [FIRST_DELAY * 2**5, FIRST_DELAY * 2**6]
    assert write.waits == [*[POLL] * 5, *delays]
    assert write.refusals == [run]


async def test_a_refused_end_is_repeated_less_and_less_often(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    run = make()
    write = Writes(monkeypatch, run, *[REFUSAL] * 11)
    await run._settle(write)
    assert write.waits == [min(FIRST_DELAY * 2**n, MAX_DELAY) for n in range(11)]
    assert (run.refused, write.refusals) == (True, [run])
    assert caplog.text.count("is not stored yet, and is repeated") == 1


@pytest.mark.parametrize(("state", "level"), [("55P03", "WARNING"), ("XX000", "ERROR")])
def test_a_temporary_refusal_is_a_warning(
    caplog: pytest.LogCaptureFixture, state: str, level: str
) -> None:
    error = Refused("no")
    error.sqlstate = state
    make()._refuse(error)
    assert [record.levelname for record in caplog.records] == [level]
    caplog.clear()
    make()._refuse(BUG)
    assert [record.levelname for record in caplog.records] == ["ERROR"]


async def test_a_run_that_was_lost_is_not_settled_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    run = make()
    run._stop_reason = "lost"
    write = Writes(monkeypatch, run, REFUSAL)
    await run._settle(write)
    assert (write.count, write.waits) == (1, [])
    assert "lost its lease" in caplog.text


@pytest.mark.parametrize(
    ("reason", "refused", "count"),
    [("shutdown", False, 2), ("shutdown", True, 1), ("paused", False, 4), (None, True, 4)],
)
async def test_an_end_at_a_shutdown_is_tried_twice(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    reason: str | None,
    refused: bool,
    count: int,
) -> None:
    run = make()
    run._stop_reason = reason
    run.refused = refused
    write = Writes(monkeypatch, run, *[OUTAGE] * 3)
    await run._settle(write)
    assert write.count == count
    assert ("could not settle D-1" in caplog.text) == (count < 4)


async def test_an_end_with_invalid_values_is_stored_as_a_failure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for failure, text in ((None, "the outcome could not"), (Failure("busy"), "busy; its details")):
        run = make()
        write = Writes(monkeypatch, run, BUG)
        await run._settle(write, failure)
        (stored,) = cast("Any", run._services.settlement).failures
        assert stored.startswith(text)
        assert stored.endswith("could not be stored: ValueError: a value")
        assert (write.count, write.waits, run.refused) == (1, [], False)
    run = make()
    await run._settle(Writes(monkeypatch, run, UsageError("too long")))
    assert cast("Any", run._services.settlement).failures == [
        "the outcome could not be stored: too long"
    ]


async def test_a_failure_that_cannot_be_stored_either_is_repeated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = make()
    plain = [0]

    async def refuse(*_: object) -> None:
        plain[0] += 1
        if plain[0] < 4:
            raise BUG

    monkeypatch.setattr(run._services.settlement, "failure", refuse)
    write = Writes(monkeypatch, run, BUG)
    await run._settle(write)
    assert (write.count, plain, run.refused) == (1, [4], True)
    assert write.waits == [FIRST_DELAY, 2 * FIRST_DELAY, 4 * FIRST_DELAY]


async def test_a_result_whose_values_are_checked_elsewhere_is_repeated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = make()
    write = Writes(monkeypatch, run, BUG)
    await run._settle(write, checks_values=True)
    assert (write.count, run.refused) == (2, True)
    assert cast("Any", run._services.settlement).failures == []


@pytest.mark.parametrize("refused", [True, False])
async def test_only_the_repetition_of_a_refused_end_can_be_canceled(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, refused: bool
) -> None:
    run = make()
    run.refused = refused
    run._stop_reason = "shutdown"
    write = Writes(monkeypatch, run, asyncio.CancelledError())
    if refused:
        await run._settle(write)
        assert "could not settle D-1: it was shutdown" in caplog.text
    else:
        with pytest.raises(asyncio.CancelledError):
            await run._settle(write)
        assert not caplog.text
    assert write.count == 1


def _database_error(kind: type[DraftsmanError], state: str | None) -> DraftsmanError:
    error = kind("no")
    error.sqlstate = state
    return error


@cases(
    ("error", "invalid"),
    [
        (BUG, True),
        (UsageError("too long"), True),
        (_database_error(Refused, "22003"), True),
        (_database_error(Refused, "23505"), False),
        (_database_error(Refused, None), False),
        (OUTAGE, False),
    ],
)
def test_only_errors_of_values_reject_an_end(error: Exception, invalid: bool) -> None:
    assert module._has_invalid_values(error) is invalid


REASONS = ("canceled", "paused", "shutdown", "lost", "timeout")


@cases(("reason",), [(reason,) for reason in REASONS])
def test_a_handler_is_canceled_once(reason: str) -> None:
    side = Side()
    run = make(side)
    assert run.cancel(reason)
    assert (run._stop_reason, side.stopping, cancellations(run)) == (reason, reason, 1)
    assert not run.cancel("timeout")
    assert (run._stop_reason, cancellations(run)) == (reason, 1)


def test_a_run_without_a_context_or_a_task_is_only_marked() -> None:
    run = make()
    assert run.cancel("canceled")
    assert cancellations(run) == 1
    run = make()
    run.task = None
    assert not run.cancel("canceled")
    assert run._stop_reason is None
    run.refused = True
    assert not run.cancel("lost")
    assert run._stop_reason is None
    run.kill()


def test_a_run_that_has_not_begun_or_is_settling_is_not_canceled() -> None:
    run = make()
    run._begun = False
    assert run.cancel("shutdown")
    assert (run._stop_reason, cancellations(run)) == ("shutdown", 0)
    run = make()
    run._settling = True
    assert run.cancel("shutdown")
    assert (run._stop_reason, cancellations(run)) == ("shutdown", 0)


def test_a_parked_run_does_not_need_its_lease() -> None:
    run = make(Side(parked=True))
    assert not run.holds_lease
    assert not run.cancel("lost")
    assert run._stop_reason is None
    assert run.cancel("shutdown")
    assert make(Side()).holds_lease
    assert make().holds_lease


@cases(("reason", "stopped"), [(reason, reason in ("lost", "shutdown")) for reason in REASONS])
def test_a_refused_end_is_given_up_when_it_is_lost_or_at_a_shutdown(
    reason: str, stopped: bool
) -> None:
    run = make()
    run.refused = True
    run._settling = True
    assert run.cancel(reason) is stopped
    assert (run._stop_reason, cancellations(run)) == ((reason, 1) if stopped else (None, 0))
    if stopped:
        assert not run.cancel(reason), "once"
        other = "shutdown" if reason == "lost" else "lost"
        assert run.cancel(other), "the lease may end before or after the shutdown"
        assert cancellations(run) == 2


def test_only_a_stopped_handler_that_goes_on_ignores_its_stop() -> None:
    run = make(Side())
    assert not run.ignores_stop
    run.cancel("lost")
    assert run.ignores_stop
    for name in ("_begun", "_settling"):
        changed = make(Side())
        changed.cancel("lost")
        setattr(changed, name, name == "_settling")
        assert not changed.ignores_stop
    for side in (Side(ending=True), Side(parked=True)):
        changed = make(side)
        changed.cancel("shutdown")
        assert not changed.ignores_stop


def test_a_handler_that_ends_its_processes_or_is_settled_is_not_killed() -> None:
    run = make(Side())
    run.kill()
    assert cancellations(run) == 1
    run = make()
    run.kill()
    assert cancellations(run) == 1
    run = make(Side(ending=True))
    assert run.ending
    run.kill()
    assert cancellations(run) == 0
    run = make(Side())
    assert not run.ending
    run._settling = True
    run.kill()
    assert cancellations(run) == 0


def test_a_parked_run_is_interrupted_unless_it_settles() -> None:
    run = make()
    run._interrupt()
    assert cancellations(run) == 1
    run._settling = True
    run._interrupt()
    assert cancellations(run) == 1
    run = make()
    run.task = None
    run._interrupt()


class Ends:
    """How an execution ended: the names of the calls."""

    def __init__(self, patch: pytest.MonkeyPatch, execution: Execution) -> None:
        self.calls: list[str] = []
        self.settling: list[bool] = []
        for name in (
            "_end_caught_pause",
            "_drop_cancellation",
            "_end",
            "_settle_stopped",
            "_end_failed",
        ):
            patch.setattr(execution, name, self._note(name, execution))

    def _note(self, name: str, execution: Execution) -> Callable[..., Awaitable[None]]:
        async def note(*_: object) -> None:
            self.calls.append(name)
            self.settling.append(execution._settling)

        return note


@pytest.mark.parametrize(
    ("error", "reason", "parked", "calls"),
    [
        (asyncio.CancelledError(), None, True, []),
        (Parked(), "shutdown", True, []),
        (ValueError("x"), None, True, ["_end_caught_pause"]),
        (LeaseLost("gone"), None, False, ["_drop_cancellation", "_end"]),
        (LeaseLost("gone"), "lost", False, ["_end"]),
        (asyncio.CancelledError(), "timeout", False, ["_settle_stopped"]),
        (asyncio.CancelledError(), "canceled", False, ["_settle_stopped"]),
        (asyncio.CancelledError(), None, False, ["_drop_cancellation", "_end_failed"]),
        (ValueError("x"), None, False, ["_drop_cancellation", "_end_failed"]),
        (ValueError("x"), "canceled", False, ["_end_failed"]),
        (ValueError("x"), "shutdown", False, ["_settle_stopped"]),
        (SystemExit(3), None, False, ["_drop_cancellation", "_end_failed"]),
    ],
    ids=repr,
)
async def test_an_exception_becomes_one_end_of_the_run(
    monkeypatch: pytest.MonkeyPatch,
    error: BaseException,
    reason: str | None,
    parked: bool,
    calls: list[str],
) -> None:
    for used in (True, False):
        if parked and not used:
            continue
        side = Side(parked=parked)
        cast("Any", side).log = SimpleNamespace(write=lambda _: None)
        run = make(side if used else None)
        run._stop_reason = reason
        ends = Ends(monkeypatch, run)
        await run._settle_error(error)
        assert ends.calls == calls
        assert all(ends.settling), "the task must not be canceled from now on"
        assert side.ended == used


async def test_an_outage_at_an_end_is_logged_at_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    run = make()
    await run._settle(Writes(monkeypatch, run, OUTAGE))
    assert caplog.text.count("database unreachable, retrying") == 1


@pytest.mark.parametrize(("error", "logged"), [(None, 0), (LeaseLost("gone"), 0), (REFUSAL, 1)])
async def test_a_run_ends_without_the_rest_of_its_log_that_is_refused(
    caplog: pytest.LogCaptureFixture, error: DraftsmanError | None, logged: int
) -> None:
    async def write() -> None:
        if error is not None:
            raise error

    await make()._store_log(write)
    assert caplog.text.count("the end of the log of run 1 was not stored") == logged


def test_a_group_is_a_pause_if_all_of_its_exceptions_are() -> None:
    pause = asyncio.CancelledError()
    bug = ValueError("x")
    assert module._is_pause(BaseExceptionGroup("", [pause, BaseExceptionGroup("", [Parked()])]))
    assert not module._is_pause(BaseExceptionGroup("", [pause, bug]))
    assert not module._is_pause(bug)


def test_a_programming_error_without_a_place_names_none(monkeypatch: pytest.MonkeyPatch) -> None:
    for place, text in (("", "ValueError: x"), ("jobs.py:7", "ValueError: x (jobs.py:7)")):
        monkeypatch.setattr(handler_errors, "find_error_location", lambda *_, found=place: found)
        failure = handler_errors.handler_failure(ValueError("x"), "jobs")
        assert (str(failure), failure.code) == (text, "programming_error")


def test_the_log_has_the_whole_text_of_a_failure_that_the_job_cuts() -> None:
    for length, details in ((ERROR_LIMIT, None), (ERROR_LIMIT + 1, True)):
        failure = Failure("x" * length)
        assert handler_errors.failure_details(failure, failure) == (
            str(failure) if details else None
        )
    assert "ValueError: x" in (handler_errors.failure_details(ValueError("x"), Failure("x")) or "")


def test_a_handler_that_is_an_object_is_named_by_its_class() -> None:
    class Report:
        async def __call__(self, ctx: RunContext) -> Outcome:
            return Done()

    assert module._name(Report()).endswith(
        ":test_a_handler_that_is_an_object_is_named_by_its_class.<locals>.Report"
    )


@pytest.mark.parametrize("reason", ["paused", "shutdown"])
async def test_a_stopped_run_is_released_with_the_reason(
    monkeypatch: pytest.MonkeyPatch, reason: str
) -> None:
    run = make()
    released = list[tuple[str, bool]]()

    async def release_run(job: ClaimedJob, reason: str) -> None:
        released.append((reason, run._settling))

    monkeypatch.setattr(run._services.settlement, "release_run", release_run, raising=False)
    run._deadlines = Deadlines(asyncio.get_running_loop())
    run._stop_reason = reason
    await run._settle_stopped()
    assert released == [(reason, True)]


@pytest.mark.parametrize("status", [None, Status.CANCELED])
async def test_a_refused_write_is_a_lost_lease_unless_the_job_was_canceled(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, status: Status | None
) -> None:
    run = make()

    async def canceled(job: ClaimedJob) -> Status | None:
        return status

    monkeypatch.setattr(run._services.settlement, "canceled", canceled, raising=False)
    await run._settle_lost()
    assert ("D-1 lost its lease" in caplog.text) == (status is None)


async def test_a_cancellation_that_the_handler_requested_itself_is_dropped() -> None:
    for is_delivered in (False, True):
        run = make()
        run.task = task = cast("asyncio.Task[None]", asyncio.current_task())
        for _ in range(2):
            task.cancel()
        if is_delivered:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(0)
        await run._drop_cancellation()
        assert task.cancelling() == 0, "a timeout of the settlement would count as its end"
        await asyncio.sleep(0)


async def test_a_handler_has_a_deadline_and_can_be_interrupted_until_it_ends() -> None:
    deadlines = Deadlines(asyncio.get_running_loop())
    seen: list[RunContext] = []

    async def handler(ctx: RunContext) -> Outcome:
        assert len(deadlines) == 1
        assert (ctx._continue_in_grace, ctx._interrupt) == (run._continue_in_grace, run._interrupt)
        seen.append(ctx)
        return Done({"n": 1})

    run = make()
    run._handler = handler
    run._deadlines = deadlines
    await run._execute()
    assert run.result == {"n": 1}
    assert len(deadlines) == 0
    (ctx,) = seen
    assert (ctx._continue_in_grace, ctx._interrupt) == (None, None), "nothing keeps the run"


async def test_the_return_value_of_a_parked_run_is_no_result(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def handler(ctx: RunContext) -> Outcome:
        cast("Any", ctx)._used_run = Side(parked=True)
        return Done({"n": 1})

    run = make()
    run._handler = handler
    run._deadlines = Deadlines(asyncio.get_running_loop())
    ends = Ends(monkeypatch, run)
    await run._execute()
    assert (ends.calls, run.result) == (["_end_caught_pause"], None)


async def test_a_run_has_the_time_that_earlier_runs_left() -> None:
    for earlier in (59.0, 60.0):
        run = make(run=2)

        async def previous_runtime(_: Lease, spent: float = earlier) -> float:
            return spent

        cast("Any", run._services).claim = SimpleNamespace(previous_runtime=previous_runtime)
        if earlier < 60.0:
            assert await run._check_runtime() == earlier
        else:
            with pytest.raises(Failure, match="ran 60 s in total, over the job limit of 60 s"):
                await run._check_runtime()


@cases("answered", [True, False])
async def test_the_deadline_of_a_run_does_not_pass_while_it_waits_for_an_answer(
    answered: bool,
) -> None:
    deadlines = Deadlines(asyncio.get_running_loop())
    next_run = ClaimedJob([1, 8, 2, "running", "noop"])
    during: list[int] = []

    async def wait(*_: object) -> ClaimedJob | None:
        during.append(len(deadlines))
        return next_run if answered else None

    run = make()
    run._deadlines = deadlines
    run._continue = wait
    deadlines.add(run._time_out, 50.0)
    job = await run._continue_in_grace(5.0, lambda: True)
    assert job is (next_run if answered else None)
    assert during == [0]
    assert len(deadlines) == answered
    assert (49.0 < deadlines.remove(run._time_out) <= 50.0) is answered


async def test_a_run_without_a_grace_period_does_not_wait() -> None:
    assert await make()._continue_in_grace(5.0, lambda: True) is None


@pytest.mark.parametrize("error", [None, REFUSAL], ids=repr)
async def test_the_job_of_a_handler_that_does_not_stop_is_released(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, error: Exception | None
) -> None:
    run = make()
    released = list[tuple[str, bool]]()

    async def release_run(job: ClaimedJob, reason: str) -> None:
        released.append((reason, run._settling))
        if error is not None:
            raise error

    monkeypatch.setattr(run._services.settlement, "release_run", release_run, raising=False)
    await run.abandon()
    assert released == [("shutdown", True)]
    assert ("could not settle D-1" in caplog.text) == (error is not None)
