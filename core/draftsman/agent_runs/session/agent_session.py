"""The worker's side of the agent protocol; messages are stored before their acknowledgment."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from functools import partial
from pathlib import PurePosixPath
from typing import Any, Final, cast

from draftsman.agent_runs.clones.workspace import Snapshot, Workspace
from draftsman.agent_runs.protocol.agent_messages import (
    ActivityMessage,
    ApproveMessage,
    ArtifactMessage,
    AskMessage,
    CheckpointMessage,
    ErrorMessage,
    EventMessage,
    FromAgent,
    ListenMessage,
    LogMessage,
    ResultMessage,
    StepMessage,
    UsageMessage,
)
from draftsman.agent_runs.protocol.codec import encode, parse
from draftsman.agent_runs.protocol.protocol import (
    AckMessage,
    AgentErrorClass,
    AnswerMessage,
    ParkMessage,
    RefusedMessage,
    ToAgent,
)
from draftsman.agent_runs.request_text import shown_to_people
from draftsman.agent_runs.session.person_messages import PersonMessages
from draftsman.agent_runs.session.quota_tracker import QuotaTracker, size_of, watch_disk
from draftsman.agent_runs.session.saved_work import SavedWork
from draftsman.agent_runs.session.usage_meter import UsageMeter
from draftsman.costs.budgets import BudgetState, question_of
from draftsman.errors import DraftsmanError, Failure, UsageError
from draftsman.handlers.run_pause import check_keys
from draftsman.handlers.worker_run import WorkerRun
from draftsman.jobs.event_kinds import AGENT_KIND
from draftsman.jobs.reserved_names import Owner, check_artifact, check_key
from draftsman.jobs.retries import as_failure, classify
from draftsman.jobs.runs.quota import PREFIX, Quota, is_quota
from draftsman.questions.question import BUDGET_KEY, Answered, NoAnswer
from draftsman.questions.question_spec import QuestionSpec
from draftsman.sandbox.processes.process import SEND_AHEAD, AgentProcess, MalformedLine

# The grace period of a question: the agent is kept running for a quick answer.
#
# The question is stored first, and parks the run as every question does. An answer within the
# period claims the job for this worker, whose agent continues as the job's next run. Otherwise,
# also if the worker dies, the next run starts from the checkpoint.


class GracePeriod:
    """The questions of a session whose answers are waited for."""

    def __init__(self, run: WorkerRun) -> None:
        self._run = run
        self._lease_held = asyncio.Event()
        self._lease_held.set()
        self.on_continue: Callable[[], Awaitable[None]] | None = None
        """Called when an answer has begun the next run of the job."""

    def seconds(self, message: AskMessage | ApproveMessage) -> float:
        """Return the length of the period of a question, 0 without one.

        An approval has none: the tree that people see must not change while they decide.
        """
        if isinstance(message, ApproveMessage) or self._run.stopping is not None:
            return 0
        settings = self._run.settings
        return min(message.grace, settings.questions.ask_grace, settings.worker.lease / 2)

    async def ask(
        self, process: AgentProcess, questions: Sequence[QuestionSpec], seconds: float
    ) -> dict[str, Answered | NoAnswer]:
        """Ask, and wait for all answers; return them by key, none if the run stays parked."""
        self._lease_held.clear()
        try:
            answers = await self._run.ask_in_grace(questions, seconds, process.is_alive)
        finally:
            self._lease_held.set()
        if answers is not None and self.on_continue is not None:
            await self.on_continue()
        return answers or {}

    async def may_write(self) -> bool:
        """Wait for the end of a period; return whether the run may write again.

        Output of the agent, messages for it and its calls of the model wait meanwhile.
        """
        await self._lease_held.wait()
        return not self._run.parked


# Messages and output of an agent whose run has parked in a grace period: they are not stored.


PARKED: Final = "the run is parked: exit, and continue in the next run"


class DroppedOutput:
    """Counts of the messages and of the standard error that a parked run dropped."""

    def __init__(self) -> None:
        self._messages: Counter[str] = Counter()
        self._bytes = 0

    async def add_message(self, line: bytes | MalformedLine) -> RefusedMessage | None:
        """Count a message; return the refusal of a message with an id."""
        message = await parse(line)
        name = "malformed line" if isinstance(message, MalformedLine) else message.type
        self._messages[name] += 1
        return None if message.id is None else RefusedMessage(id=message.id, reason=PARKED)

    def add_output(self, chunk: bytes) -> None:
        """Count standard error."""
        self._bytes += len(chunk)

    @property
    def text(self) -> str:
        """The line for the log of the run; empty if nothing was dropped."""
        counts = [f"{count} {name}" for name, count in sorted(self._messages.items())]
        if self._bytes:
            counts.append(f"{self._bytes:,} bytes of output")
        if not counts:
            return ""
        return f"[parked] dropped: {', '.join(counts)}; the run had parked, and stores nothing more"


PARK_TIMEOUT: Final = 10.0
"""Seconds that an agent has to exit, after it was parked or has closed its output."""
TERMINATE_TIMEOUT: Final = 5.0
"""Seconds between SIGTERM and SIGKILL."""
LOGGED_REFUSALS: Final = 100
"""Refusals of lines without an id in the log of a run; the others are counted."""
MAX_REFUSALS: Final = 64 * 1024
"""Bytes that wait for an agent to read them, above which such a line gets no refusal."""
PROGRAM_MESSAGES: Final = (AskMessage, ApproveMessage, EventMessage)
"""Messages that any program of the run may send on its socket."""
PROGRAMS_WINDOW: Final = 0.2
"""Seconds for which a program that asks with a grace period waits for others that ask, too."""
PROGRESS: Final = "progress"
"""Kind of events of which only the newest in an interval is stored."""
PROGRESS_INTERVAL: Final = 5.0
"""Minimum seconds between two stored events of progress."""


Answers = dict[str, Answered | NoAnswer]
"""Answers by the key of their question."""


class AgentSession:
    """A session with an agent, which starts from the saved work.

    After `listen`, `result`, `error` or `questions` has the agent's final message; all three are
    empty if the agent exited without any.
    """

    def __init__(
        self,
        run: WorkerRun,
        workspace: Workspace,
        work: SavedWork,
        meter: UsageMeter,
    ) -> None:
        self.result: ResultMessage | None = None
        self.error: Failure | None = None
        self.questions: list[QuestionSpec] = []
        """The questions of the agent and of other programs, asked together once it has exited."""
        self.exit_code: int | None = None
        self.messages = PersonMessages(run, workspace)
        self._run = run
        self._workspace = workspace
        self._quotas = QuotaTracker(run)
        self.work = work
        self.meter = meter
        self.grace = GracePeriod(run)
        self.dropped = DroppedOutput()
        self._termination: asyncio.Task[None] | None = None
        self._lines = 0
        """Lines of the agent so far."""
        self._malformed = 0
        """Those that are no messages and have no id."""
        self._turn = asyncio.Lock()
        """Held while a message of the agent or of another program is handled."""
        self._progress: EventMessage | None = None
        self._progress_at = -PROGRESS_INTERVAL
        self._process: AgentProcess | None = None
        self.started = asyncio.Event()
        """Set once the messages of the agent are handled."""
        self._completes = False
        """Whether a result is complete: the agent reported its usage, and no call was refused."""
        self._waiting: dict[str, QuestionSpec] = {}
        """The questions of programs that are asked together in a grace period, by key."""
        self._period: asyncio.Task[Answers] | None = None
        self._told: set[str] = set()
        """The keys of questions whose answers this run has got."""

    async def listen(self, process: AgentProcess) -> None:
        """Handle the agent's messages until it exits."""
        self._process = process
        self.started.set()
        try:
            async for line in process.lines():
                self._lines += 1
                await self._receive(process, line)
            if (left_out := self._malformed - LOGGED_REFUSALS) > 0:
                text = f"[refused] {left_out:,} more lines that are no messages of the protocol"
                self._run.log.write(text)
            if self._termination is None:
                self._termination = asyncio.create_task(self._end_silent(process))
            self.exit_code = await process.wait()
        finally:
            if self._termination is not None:
                self._termination.cancel()
            if self._period is not None:
                self._period.cancel()
                await asyncio.wait([self._period])

    async def is_budget_used(self) -> bool:
        """Return whether a budget is used up before the agent starts, which is a question then."""
        state = await self.meter.check()
        if state.outcome == "used":
            self.questions = [question_of(state, self._run.job.name, self._run.job.run)]
        return bool(self.questions)

    async def stop_for_budget(self, state: BudgetState) -> None:
        """Ask for a larger budget, and park the agent so that it saves its work."""
        if not self.questions and self._process is not None:
            self.questions = [question_of(state, self._run.job.name, self._run.job.run)]
            await self.park(self._process, None)

    def stop(self, failure: Failure) -> None:
        """Kill the agent because of a limit."""
        if self._process is not None:
            self._fail(self._process, failure)

    @property
    def is_ending(self) -> bool:
        """Whether the agent was parked or stopped."""
        return bool(self.questions) or self.error is not None

    async def park(self, process: AgentProcess, id: str | None) -> None:
        """Ask the agent to save a checkpoint and exit; terminate it after a timeout."""
        process.post(encode(ParkMessage(id=id)))
        self._schedule_termination(process)

    async def relay_messages(self, process: AgentProcess) -> None:
        """Send the messages of people to the agent until canceled."""
        await self.messages.relay(
            lambda message: process.send(encode(message)),
            lambda: self.result is None and self._termination is None and not self._run.parked,
        )

    async def misses_messages(self) -> bool:
        """Return whether a person has sent a message that the result does not have."""
        return await self.messages.remain(self._listed)

    async def deliver_messages(self) -> None:
        """Record that the result has the messages of people that were sent to the agent."""
        await self.messages.deliver(self._listed)

    async def save_result(self, snapshot: Snapshot) -> None:
        """Store a checkpoint of the tree of the result, with the data of the latest checkpoint."""
        await self.work.save(snapshot, None, self.messages.seen(self._listed))

    @property
    def _listed(self) -> tuple[str, ...] | None:
        """The ids of the messages that the result has, if it says so."""
        return None if self.result is None else self.result.messages

    async def watch_disk(self, process: AgentProcess) -> None:
        """Kill the agent once the files of its run exceed the disk quota."""
        self._fail(process, await watch_disk(self._workspace.folder, self._run.settings.quotas))

    def _fail(self, process: AgentProcess, failure: Failure) -> None:
        """Kill the agent because of a quota."""
        self.error = failure
        self.questions = []
        self._run.log.write(f"[stopped] {failure}")
        process.kill()

    async def _end_silent(self, process: AgentProcess) -> None:
        """End an agent that lives on without its output, and so without a result."""
        await asyncio.sleep(PARK_TIMEOUT)
        text = "the agent closed its output without a result, and did not exit"
        self.error = self.error or Failure(text, origin="agent", code="protocol")
        self._run.log.write(f"[stopped] {text}")
        await _terminate(process)

    def _schedule_termination(self, process: AgentProcess) -> None:
        if self._termination is None:
            self._termination = asyncio.create_task(_terminate_after_timeout(process))

    async def _receive(self, process: AgentProcess, line: bytes | MalformedLine) -> None:
        if is_quota(self.error):
            return
        if self._run.parked:  # its question is asked: nothing can be stored
            refusal = await self.dropped.add_message(line)
            if refusal is not None and process.unread <= MAX_REFUSALS:
                process.post(encode(refusal))
            return
        try:
            async with self._turn:
                self._quotas.message()
                await self._handle(process, line)
        except Failure as error:
            if not is_quota(error):
                raise
            self._fail(process, error)

    # Other programs of the run

    async def answer_program(self, process: AgentProcess, line: bytes) -> bytes:
        """Handle a message of a program on the socket of the run; return the reply."""
        message = await parse(line)
        if isinstance(message, MalformedLine):
            return encode(RefusedMessage(id=message.id, reason=message.reason))
        if not isinstance(message, PROGRAM_MESSAGES) or message.id is None:
            text = f"a program sends ask, approve or event, with an id, not {message.type}"
            return encode(RefusedMessage(id=message.id, reason=text))
        try:
            async with self._turn:
                if self.result is not None or self.error is not None or self._run.parked:
                    return encode(RefusedMessage(id=message.id, reason="the run is ending"))
                self._quotas.message()
                reply = await self._reply_to_program(process, message, message.id)
            if isinstance(reply, Coroutine):
                reply = await reply
            return encode(reply)
        except Failure as error:
            if is_quota(error):
                self._fail(process, error)
            return encode(_refusal(message.id, error))
        except DraftsmanError as error:
            return encode(_refusal(message.id, Failure(str(error))))

    async def _join_period(
        self, process: AgentProcess, item: QuestionSpec, seconds: float, id: str
    ) -> ToAgent:
        """Ask in the grace period that is about to begin, together with other programs.

        Raises UsageError for a key with which another program asks another question.
        """
        check_keys(item, self._waiting.values())
        self._waiting.setdefault(item.key, item)
        if self._period is None:
            self._period = asyncio.create_task(self._ask_together(process, seconds))
        answer = (await asyncio.shield(self._period)).get(item.key)
        return ParkMessage(id=id) if answer is None else self._reply(id, item.key, answer)

    def _reply(self, id: str, key: str, answer: Answered | NoAnswer) -> AnswerMessage:
        shown = partial(shown_to_people, self._run.job)
        return AnswerMessage.of(answer, shown, id=id, key=key)

    async def _ask_together(self, process: AgentProcess, seconds: float) -> Answers:
        """Ask the questions of all programs that ask within a moment; return the answers by key."""
        try:
            await asyncio.sleep(PROGRAMS_WINDOW)
            async with self._turn:
                questions = list(self._waiting.values())
                self._waiting = {}
                if self.result is not None or self.error is not None or self._run.parked:
                    return {}
                if self.questions:  # another program has parked the run meanwhile
                    for question in questions:
                        await self._pose(question)
                    return {}
                await self.work.save_running(process)
                answers = await self._ask_in_grace(process, questions, seconds)
                if self._run.parked:
                    await self.park(process, None)
                return answers
        finally:
            self._period = None

    async def _reply_to_program(
        self, process: AgentProcess, message: AskMessage | ApproveMessage | EventMessage, id: str
    ) -> ToAgent | Coroutine[Any, Any, ToAgent]:
        """Return the reply; for a question with a grace period, its coroutine."""
        if isinstance(message, EventMessage):
            if message.kind == PROGRESS:
                self._progress = message
                if time.monotonic() - self._progress_at < PROGRESS_INTERVAL:
                    return AckMessage(id=id)
                await self.store_progress()
            else:
                await self._event(message)
            return AckMessage(id=id)
        reply = await self._find_reply(message.of_program())
        if isinstance(reply, QuestionSpec) and (request := await self._untold_request(reply)):
            reply = self._reply(id, reply.key, request)
        if isinstance(reply, QuestionSpec):
            if not self.questions and (seconds := self.grace.seconds(message)):
                return self._join_period(process, reply, seconds, id)
            await self._pose(reply)
            await self.park(process, None)
            return ParkMessage(id=id)
        return reply

    async def store_progress(self) -> None:
        """Store the newest progress that is not stored yet."""
        if (progress := self._progress) is not None:
            self._progress = None
            self._progress_at = time.monotonic()
            await self._event(progress)

    # Messages of the agent

    async def _handle(self, process: AgentProcess, line: bytes | MalformedLine) -> None:
        message = await parse(line)
        if isinstance(message, MalformedLine):
            self._refuse_line(process, message)
            return
        if isinstance(message, AskMessage | ApproveMessage):
            await self._answer_or_park(process, message)
            return
        try:
            tree = await self._store(process, message)
        except (UsageError, Failure) as error:
            if isinstance(error, Failure) and is_quota(error):
                raise
            self._run.log.write(f"[refused] {message.type}: {error}")
            self._send(process, _refusal(message.id, error))
            return
        if message.id is not None:
            self._send(process, AckMessage(id=message.id, tree=tree))
        if isinstance(message, ResultMessage | ErrorMessage):
            self._schedule_termination(process)

    async def _answer_or_park(
        self, process: AgentProcess, message: AskMessage | ApproveMessage
    ) -> None:
        """Reply with a recorded answer; else park the agent, to ask people after it has exited."""
        reply = await self._find_reply(message)
        if isinstance(reply, QuestionSpec):
            seconds = 0 if self.questions else self.grace.seconds(message)
            if not seconds:
                await self._pose(reply)
            elif answers := await self._ask_in_grace(process, [reply], seconds):
                answer = answers[reply.key]
                self._send(process, self._reply(message.id, message.key, answer))
                return
            await self.park(process, message.id)
        else:
            self._send(process, reply)

    async def _ask_in_grace(
        self, process: AgentProcess, questions: Sequence[QuestionSpec], seconds: float
    ) -> Answers:
        """Ask while the agent keeps running; no answers if the run stays parked."""
        for _ in questions:
            await self._quotas.spend(Quota.QUESTIONS)
        await self.store_progress()
        if (patch := await self.work.patch()) is not None:
            await self._run.patch(patch)
        answers = await self.grace.ask(process, questions, seconds)
        if answers:
            self.messages.wake()
        return answers

    async def _pose(self, item: QuestionSpec) -> None:
        """Ask this question at the end of the run, together with those that were posed before.

        Another question with the same key is asked in the next run.
        """
        if item.key not in {question.key for question in self.questions}:
            await self._quotas.spend(Quota.QUESTIONS)
            self.questions.append(item)

    async def _find_reply(
        self, message: AskMessage | ApproveMessage
    ) -> RefusedMessage | AnswerMessage | QuestionSpec:
        """Return the refusal of a question, its recorded answer, or else the question."""
        item = self._run.shown_question(message.question())
        try:
            check_key(item.key, Owner.HANDLER, "question")
            self._run.check_question(item)
        except UsageError as error:
            self._run.log.write(f"[refused] {message.type}: {error}")
            return RefusedMessage(id=message.id, reason=str(error))
        answer = await self._run.find_answer(item, self.work.patch_sha256)
        if answer is None:
            return item
        self._told.add(item.key)
        return self._reply(message.id, message.key, answer)

    async def _untold_request(self, item: QuestionSpec) -> Answered | None:
        """Return the request for changes of an approval, once in a run, also about another tree.

        A program does not know the answers so far; once it does, people are asked again.
        """
        if item.key in self._told:
            return None
        self._told.add(item.key)
        return await self._run.find_requested_changes(item)

    async def _store(self, process: AgentProcess, message: FromAgent) -> str | None:
        """Store a message; return the tree of a checkpoint."""
        match message:
            case CheckpointMessage():
                messages = self.messages.ordinals(message.messages)
                return await self.work.checkpoint(process, message, messages)
            case StepMessage():
                await self._step(message)
            case EventMessage():
                await self._event(message)
            case LogMessage():
                await self._run.log_stream(f"{message.text}\n")
            case ActivityMessage():
                self._run.activity.add(message.activity())
            case ArtifactMessage():
                await self._artifact(process, message)
            case UsageMessage():
                await self._add_usage(message)
            case ListenMessage():
                self.messages.listen()
            case ResultMessage():
                self.result = message
                if self._completes:
                    self.questions = [item for item in self.questions if item.key != BUDGET_KEY]
            case ErrorMessage():
                self.error = message.failure()
            case _:
                raise UsageError(f"unexpected message type {message.type!r}")
        return None

    async def _add_usage(self, message: UsageMessage) -> None:
        used_up = await self.meter.reported(message)
        if used_up and not self.questions and self.result is None:
            self._completes = True
            await self.stop_for_budget(used_up[0])

    async def _event(self, message: EventMessage) -> None:
        await self._quotas.spend(Quota.EVENTS)
        await self._run.event(f"{AGENT_KIND}{message.kind}", message.payload, Owner.WORKER)

    async def _step(self, message: StepMessage) -> None:
        check_key(message.key, Owner.HANDLER, "step")
        await self._quotas.spend(Quota.STEPS, size_of(message.result))
        await self._run.note_step(message.key, message.invocation_id)
        if message.state == "done":
            await self._run.finish_step(message.key, message.result)

    async def _artifact(self, process: AgentProcess, message: ArtifactMessage) -> None:
        name = message.name or PurePosixPath(message.path).name
        kind = "report" if name.endswith(".md") else "file"
        check_artifact(name, kind, Owner.HANDLER)
        async with process.frozen():
            data = await self._workspace.read_artifact(message.path)
        await self._quotas.spend(Quota.ARTIFACTS, len(data))
        await self._run.artifact(name, data, kind)

    def _send(self, process: AgentProcess, message: ToAgent) -> None:
        """Reply without a wait: an agent may write all of its output before it reads."""
        process.post(encode(message))
        if process.unread > SEND_AHEAD and not is_quota(self.error):
            text = f"the agent does not read its replies: more than {SEND_AHEAD:,} bytes wait"
            code = f"{PREFIX}unread"
            failure = Failure(text, origin="agent", code=code, declared="PERMANENT")
            self._fail(process, failure)

    def _refuse_line(self, process: AgentProcess, line: MalformedLine) -> None:
        """Refuse a line that is no message; many without an id are ordinary output.

        An agent that does not read such refusals gets no more of them.
        """
        if line.id is None:
            self._malformed += 1
            if process.unread > MAX_REFUSALS:
                return
        if self._malformed <= LOGGED_REFUSALS:
            self._run.log.write(f"[refused] {line.reason}")
        number = self._lines if line.id is None else None
        self._send(process, RefusedMessage(id=line.id, line=number, reason=line.reason))


def _refusal(id: str | None, error: UsageError | Failure) -> RefusedMessage:
    """Return the reply to a message that was not stored because of the error."""
    error_class = cast(AgentErrorClass, classify(as_failure(error)).value)
    return RefusedMessage(id=id, reason=str(error), error_class=error_class)


async def _terminate_after_timeout(process: AgentProcess) -> None:
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.sleep(PARK_TIMEOUT)
        await _terminate(process)


async def _terminate(process: AgentProcess) -> None:
    process.terminate()
    await asyncio.sleep(TERMINATE_TIMEOUT)
    process.kill()
