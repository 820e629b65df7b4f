"""Decisions of this dashboard that can still be undone, and their application when they are due."""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from rich.cells import cell_len

from draftsman.actions.jobs import canceled
from draftsman.actions.questions import answered, refusal
from draftsman.errors import DraftsmanError
from draftsman.formats.invisible import one_line
from draftsman.formats.truncation import truncate
from draftsman.jobs.pending_decisions.pending_decision import PendingDecision
from draftsman.jobs.pending_decisions.service import Effect
from draftsman.questions.answer import Verdict
from draftsman_tui.dashboard.frame.connection import Connection, DatabaseClock
from draftsman_tui.terminal.results import result_text

MIN_TEXT: Final = 12
"""Cells of the text of a batch that are always shown."""
QUIT_TIMEOUT: Final = 3.0
"""Maximum seconds to apply the decisions when the dashboard quits; the leader applies the rest."""


@dataclass(frozen=True, slots=True, eq=False)
class HeldBatch:
    """Decisions that were made with one key; `text` describes them."""

    text: str
    decisions: tuple[PendingDecision, ...]

    @property
    def applies_at(self) -> datetime:
        """When the last takes effect."""
        return max(decision.applies_at for decision in self.decisions)


def undo_text(
    batches: Sequence[HeldBatch], now: datetime, key: str = "u", width: int | None = None
) -> str:
    """Return the line about the newest batch, with the time until it takes effect.

    In a `width` that is too small, the answer is truncated, and not the key.
    """
    if not batches:
        return ""
    newest = batches[-1]
    seconds = max(0, math.ceil((newest.applies_at - now).total_seconds()))
    text = one_line(newest.text)
    timing = f"takes effect in {seconds} s · {key}: undo"
    if width is not None and (over := cell_len(f"{text} · {timing}") - width) > 0:
        text = truncate(text, max(MIN_TEXT, cell_len(text) - over), cell_len)
    pending = f" · {len(batches) - 1} more pending" if batches[1:] else ""
    return f"{text} · {timing}{pending}"


class UndoWindow:
    """The pending decisions of a dashboard.

    `report` shows a result, or an error; `changed` is called when the batches change.
    """

    def __init__(
        self,
        seconds: float,
        connection: Connection,
        clock: DatabaseClock,
        *,
        report: Callable[[str, bool], object],
        changed: Callable[[], object],
    ) -> None:
        self.seconds = seconds
        """Length of the window; 0: decisions take effect at once."""
        self.batches: list[HeldBatch] = []
        self._connection = connection
        self._clock = clock
        self._report = report
        self._changed = changed
        self._tasks: dict[HeldBatch, asyncio.Task[None]] = {}

    def hold(self, text: str, decisions: Sequence[PendingDecision]) -> None:
        """Show decisions, and apply them at the end of their window."""
        self._hold(HeldBatch(text, tuple(decisions)))

    def _hold(self, batch: HeldBatch) -> None:
        self.batches.append(batch)
        self._tasks[batch] = asyncio.create_task(self._apply_when_due(batch))
        self._changed()

    def text(self, key: str = "u", width: int | None = None) -> str:
        """Return the line about the newest batch, in a width; "" without one."""
        return undo_text(self.batches, self._clock.now, key, width)

    async def undo(self) -> HeldBatch | None:
        """Undo the newest batch; None if there is none, or if it has taken effect.

        After an error the batch is held again.
        """
        if not self.batches:
            return None
        batch = self.batches.pop()
        self._tasks.pop(batch).cancel()
        self._changed()
        service = self._connection.rt.pending_decisions
        try:
            undone = [decision for decision in batch.decisions if await service.undo(decision)]
        except DraftsmanError:
            self._hold(batch)
            raise
        late = [decision for decision in batch.decisions if decision not in undone]
        for decision in late:
            await self._report_effect(decision, service.apply(decision))
        return HeldBatch(batch.text, tuple(undone)) if undone else None

    async def finish(self) -> None:
        """Apply all now: the dashboard quits. The leader applies the rest."""
        for task in self._tasks.values():
            task.cancel()
        service = self._connection.rt.pending_decisions if self.batches else None
        with contextlib.suppress(DraftsmanError, TimeoutError):
            async with asyncio.timeout(QUIT_TIMEOUT):
                for batch in self.batches:
                    for decision in batch.decisions:
                        assert service is not None  # noqa: S101
                        with contextlib.suppress(DraftsmanError):
                            await service.apply(decision, early=True)
        self.batches.clear()

    async def _apply_when_due(self, batch: HeldBatch) -> None:
        service = self._connection.rt.pending_decisions
        for decision in batch.decisions:
            seconds = max(0.0, (decision.applies_at - self._clock.now).total_seconds())
            await self._report_effect(decision, service.apply_when_due(decision, seconds))
        del self._tasks[batch]
        self.batches.remove(batch)
        self._changed()

    async def _report_effect(
        self, decision: PendingDecision, applied: Awaitable[Effect | None]
    ) -> None:
        """Report the effect of a decision; without one, another process has undone it."""
        try:
            effect = await applied
            if effect is None:
                self._report(f"{decision.name}: undone elsewhere", False)
            else:
                self._report(await self._effect_text(decision, effect), False)
        except DraftsmanError as error:
            self._report(str(error), True)

    async def _effect_text(self, decision: PendingDecision, effect: Effect) -> str:
        """Describe the effect of a decision; raises the reason of its refusal."""
        rt = self._connection.rt
        if not isinstance(effect, Verdict):
            return result_text(canceled(effect))
        if not effect.accepted:
            raise await refusal(rt, effect, decision.source_event_id)
        return result_text(await answered(rt, effect))
