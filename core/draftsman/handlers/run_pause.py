"""The pause of a run: all that the tasks of its handler wait for at once, stored together.

A task that asks waits here. As soon as no call of the context is under way, the questions of all
tasks are stored in one transaction that ends the run, and the handler is interrupted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Final

from draftsman.errors import UsageError
from draftsman.jobs.runs.outcome import Parked
from draftsman.questions.asked_question import AskedQuestion
from draftsman.questions.question_spec import QuestionSpec

MAX_QUESTIONS: Final = 100
"""Maximum number of questions that a run asks at once."""
TURNS: Final = 10
"""Turns of the event loop without a call of the context, after which a run is at rest.

A result reaches its caller through `asyncio.gather`, a task group or a task in a few of them."""
_steps: ContextVar[frozenset[object]] = ContextVar("_steps", default=frozenset())
"""The steps around a task: a pause does not wait for a step that asks itself."""


@dataclass(eq=False, slots=True)
class Wait:
    """A task that waits; `write` stores what it waits for, and returns None if the run parked."""

    order: tuple[int, float]
    """Of waits without a question, that of the least order is stored."""
    write: Callable[[], Awaitable[Any]]
    future: asyncio.Future[Any] = field(default_factory=asyncio.Future)
    steps: frozenset[object] = field(default_factory=_steps.get)


@dataclass(eq=False, slots=True)
class QuestionWait:
    """A task that waits for an answer; `ask` stores questions, its own among them."""

    item: QuestionSpec
    place: int
    """Its place among the questions of the run, which are stored in the order of their calls."""
    ask: Callable[[Sequence[AskedQuestion]], Awaitable[None]]
    alternatives: object | None = None
    """The same for alternatives, of which the first that closes counts."""
    future: asyncio.Future[Any] = field(default_factory=asyncio.Future)
    steps: frozenset[object] = field(default_factory=_steps.get)


class RunPause:
    """The calls of a run that are under way, and its tasks that wait.

    `interrupt` cancels the handler once the run has parked; without it, waiting calls raise Parked.
    """

    def __init__(self, interrupt: Callable[[], None] | None) -> None:
        self._interrupt = interrupt
        self._waits: list[Wait | QuestionWait] = []
        self._calls: set[object] = set()
        self._task: asyncio.Task[None] | None = None
        self._storing = False
        self._stored = False
        self._ended = False
        self.places = count()
        """The places of the next questions."""

    @contextmanager
    def call(self) -> Iterator[None]:
        """Let a pause wait for the block."""
        call = object()
        self._calls.add(call)
        try:
            yield
        finally:
            self._calls.discard(call)
            self._consider()

    @contextmanager
    def step(self) -> Iterator[None]:
        """Let a pause wait for the block, unless the block itself waits for people or a time."""
        call = object()
        self._calls.add(call)
        token = _steps.set(_steps.get() | {call})
        try:
            yield
        finally:
            _steps.reset(token)
            self._calls.discard(call)
            self._consider()

    async def hold(self) -> None:
        """Wait while a pause is stored; a call that began then would find no lease."""
        task = self._task
        if task is not None and self._storing and asyncio.current_task() is not task:
            await asyncio.wait([task])
            if self._stored:
                await self._interrupted()

    async def wait(self, wait: Wait | QuestionWait) -> Any:
        """Wait until the run is interrupted; return the result of a write that did not park it."""
        if self._stored:
            raise Parked
        try:
            self._add(wait)
            return await wait.future
        finally:
            self._remove(wait)

    def _add(self, wait: Wait | QuestionWait) -> None:
        """Store this with the next pause; raises UsageError for a key that is used twice.

        A task that outlives its handler is canceled: its question would park a run that has ended.
        """
        if self._ended:
            raise asyncio.CancelledError
        if isinstance(wait, QuestionWait):
            questions = [each.item for each in self._waits if isinstance(each, QuestionWait)]
            check_keys(wait.item, questions)
        self._waits.append(wait)
        self._consider()

    def _remove(self, wait: Wait | QuestionWait) -> None:
        if wait in self._waits:
            self._waits.remove(wait)
            self._consider()

    async def _interrupted(self) -> None:
        """Wait until the handler is interrupted, or has ended."""
        if self._interrupt is None:
            raise Parked
        wait = Wait((0, 0), _nothing)
        self._waits.append(wait)
        await wait.future

    def _is_at_rest(self) -> bool:
        asking: frozenset[object] = frozenset().union(*(wait.steps for wait in self._waits))
        return bool(self._waits) and self._calls <= asking

    def _consider(self) -> None:
        """Begin to store a pause if a task waits, and no call is under way."""
        if self._task is None and not self._stored and self._is_at_rest():
            self._task = asyncio.get_running_loop().create_task(self._pause())

    async def _pause(self) -> None:
        try:
            for _ in range(TURNS):
                await asyncio.sleep(0)
                if not self._is_at_rest():
                    return
            self._storing = True
            await self._store(list(self._waits))
        finally:
            self._storing = False
            self._task = None
            self._consider()

    async def _store(self, waits: list[Wait | QuestionWait]) -> None:
        """Store the questions of the waits, else the first wait without a question."""
        questions = [wait for wait in waits if isinstance(wait, QuestionWait)]
        other_waits = [wait for wait in waits if isinstance(wait, Wait)]
        first = None if questions else min(other_waits, key=lambda wait: wait.order)
        try:
            result = None if first is None else await first.write()
            if first is None:
                await questions[0].ask(_asked(questions))
        except Exception as error:
            for wait in questions if first is None else [first]:
                if wait in self._waits:
                    self._waits.remove(wait)
                    wait.future.set_exception(error)
            return
        if first is not None and result is not None:
            if first in self._waits:
                self._waits.remove(first)
                first.future.set_result(result)
            return
        self._stored = True
        if self._interrupt is not None:
            self._interrupt()
            return
        for wait in self._waits:
            if not wait.future.done():
                wait.future.set_exception(Parked())

    async def end(self) -> list[str]:
        """End the waits of a handler that has ended; return the questions that were not asked."""
        self._ended = True
        if self._task is not None:
            if not self._storing:
                self._task.cancel()
            await asyncio.wait([self._task])
        waits = list(self._waits)
        for wait in waits:
            wait.future.cancel()
        self._interrupt = None
        keys = [wait.item.key for wait in waits if isinstance(wait, QuestionWait)]
        return [] if self._stored else keys


def check_keys(item: QuestionSpec, other_questions: Iterable[QuestionSpec]) -> None:
    """Raise UsageError if one of the others, asked at once, is another question with its key."""
    if any(item.key == other.key and item.digest != other.digest for other in other_questions):
        raise UsageError(
            f"question {item.key!r} is asked twice at once, with another text or other choices;"
            " give each question a key of its own"
        )


def _asked(waits: Sequence[QuestionWait]) -> list[AskedQuestion]:
    """Return each question once, with the place of the first of its alternatives."""
    if len(waits) > MAX_QUESTIONS:
        raise UsageError(
            f"a run asks at most {MAX_QUESTIONS} questions at once, not {len(waits)}; ask the rest"
            " after the first answers"
        )
    unique: dict[str, QuestionWait] = {}
    for wait in sorted(waits, key=lambda wait: wait.place):
        unique.setdefault(wait.item.key, wait)
    groups = [wait.alternatives for wait in unique.values()]
    return [
        AskedQuestion(wait.item, alternative_to=_first_place(groups, wait.alternatives))
        for wait in unique.values()
    ]


def _first_place(groups: Sequence[object | None], group: object | None) -> int | None:
    """Return the place, from 1, of the first of several alternatives; else None."""
    if group is None or groups.count(group) == 1:
        return None
    return groups.index(group) + 1


async def _nothing() -> None:
    """Store nothing: the run has parked."""
