"""The parts of the job screen, in the order of their keys."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from draftsman.domain.messages.delivery import DeliveryStatus
from draftsman_tui.dashboard.job.deliveries import deliveries
from draftsman_tui.dashboard.job.diff import diff
from draftsman_tui.dashboard.job.log import log
from draftsman_tui.dashboard.job.questions import questions
from draftsman_tui.dashboard.job.related import artifacts, chain
from draftsman_tui.dashboard.job.row_layout import Item
from draftsman_tui.dashboard.job.runs import runs, usage
from draftsman_tui.dashboard.job.snapshot import JobSnapshot
from draftsman_tui.dashboard.job.ticket import ticket
from draftsman_tui.dashboard.job.timeline import timeline

Drawn = Callable[[JobSnapshot, int, datetime], Sequence[Item]]
"""What a part shows of a job, in so many cells, at a time by the database's clock."""


def _always(seen: JobSnapshot) -> int:
    return 1


@dataclass(frozen=True, slots=True)
class JobTab:
    """One part. `picks`: an item of it is chosen by a cursor; `follows`: its end is what counts."""

    name: str
    short: str
    """What its tab says where there is little room."""
    help: str
    items: Drawn
    picks: bool = False
    follows: bool = False
    ages: bool = False
    """Whether it is drawn anew each second."""
    many: Callable[[JobSnapshot], int] = _always
    """How many there are; with none its tab is grey."""
    calls: Callable[[JobSnapshot], bool] = lambda seen: False
    """Whether a person should look at it."""


JOB_TABS: Final = {
    part.name: part
    for part in (
        JobTab("timeline", "time", "What happened to a job.", timeline, picks=True, follows=True),
        JobTab("ticket", "ticket", "What a job was asked for.", ticket),
        JobTab("log", "log", "The log of a job's runs, live.", log, follows=True,
             many=lambda seen: len(seen.runs)),
        JobTab("diff", "diff", "The changes that a job made.", diff,
             many=lambda seen: sum(one.kind == "patch" for one in seen.files)),
        JobTab("questions", "asks", "Questions and answers of a job.", questions, picks=True,
             ages=True, many=lambda seen: len(seen.questions),
             calls=lambda seen: seen.open is not None),
        JobTab("deliveries", "told", "To whom a job was told.", deliveries, picks=True, ages=True,
             many=lambda seen: len(seen.deliveries),
             calls=lambda seen: any(
                 one.status is DeliveryStatus.DEAD_LETTER for one in seen.deliveries)),
        JobTab("runs", "runs", "The runs of a job.", runs, picks=True, ages=True,
             many=lambda seen: len(seen.runs)),
        JobTab("usage", "usage", "What a job used.", usage, picks=True, ages=True,
             many=lambda seen: sum(bool(run.usage) for run in seen.runs)),
        JobTab("chain", "chain", "The retries of a job.", chain, picks=True,
             many=lambda seen: len(seen.chain) - 1),
        JobTab("artifacts", "files", "The files and the result that a job left.", artifacts,
             picks=True,
             many=lambda seen: len(seen.files) + bool(seen.job.result)),
    )
}  # fmt: skip
NAMES: Final = tuple(JOB_TABS)
