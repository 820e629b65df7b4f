"""The parts of the job screen, in the order of their keys."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from draftsman.domain.delivery import DeliveryStatus
from draftsman_tui.dashboard.job.deliveries import deliveries
from draftsman_tui.dashboard.job.diff import diff
from draftsman_tui.dashboard.job.log import log
from draftsman_tui.dashboard.job.others import artifacts, chain
from draftsman_tui.dashboard.job.questions import questions
from draftsman_tui.dashboard.job.rows import Item
from draftsman_tui.dashboard.job.runs import runs, usage
from draftsman_tui.dashboard.job.seen import JobSeen
from draftsman_tui.dashboard.job.ticket import ticket
from draftsman_tui.dashboard.job.timeline import timeline

Drawn = Callable[[JobSeen, int, datetime], Sequence[Item]]
"""What a part shows of a job, in so many cells, at a time by the database's clock."""


def _always(seen: JobSeen) -> int:
    return 1


@dataclass(frozen=True, slots=True)
class Part:
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
    many: Callable[[JobSeen], int] = _always
    """How many there are; with none its tab is grey."""
    calls: Callable[[JobSeen], bool] = lambda seen: False
    """Whether a person should look at it."""


PARTS: Final = {
    part.name: part
    for part in (
        Part("timeline", "time", "What happened to a job.", timeline, picks=True, follows=True),
        Part("ticket", "ticket", "What a job was asked for.", ticket),
        Part("log", "log", "The log of a job's runs, live.", log, follows=True,
             many=lambda seen: len(seen.runs)),
        Part("diff", "diff", "The changes that a job made.", diff,
             many=lambda seen: sum(one.kind == "patch" for one in seen.files)),
        Part("questions", "asks", "Questions and answers of a job.", questions, picks=True,
             ages=True, many=lambda seen: len(seen.questions),
             calls=lambda seen: seen.open is not None),
        Part("deliveries", "told", "To whom a job was told.", deliveries, picks=True, ages=True,
             many=lambda seen: len(seen.deliveries),
             calls=lambda seen: any(
                 one.status is DeliveryStatus.DEAD_LETTER for one in seen.deliveries)),
        Part("runs", "runs", "The runs of a job.", runs, picks=True, ages=True,
             many=lambda seen: len(seen.runs)),
        Part("usage", "usage", "What a job used.", usage, picks=True, ages=True,
             many=lambda seen: sum(bool(run.usage) for run in seen.runs)),
        Part("chain", "chain", "The retries of a job.", chain, picks=True,
             many=lambda seen: len(seen.chain) - 1),
        Part("artifacts", "files", "The files and the result that a job left.", artifacts,
             picks=True,
             many=lambda seen: len(seen.files) + bool(seen.job.result)),
    )
}  # fmt: skip
NAMES: Final = tuple(PARTS)
