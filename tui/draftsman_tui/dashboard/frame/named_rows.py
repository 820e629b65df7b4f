"""Jobs and questions that a command names, in place of the selected rows: `:cancel D-1..D-3`."""

from __future__ import annotations

import re
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final

from draftsman.errors import UsageError
from draftsman.ids import job_name, parse_job, parse_jobs, parse_question, question_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual.screen import Screen

    from draftsman.runtime import Runtime
    from draftsman_tui.dashboard.command import DashboardCommand

RUNNING_COMMAND: Final[ContextVar[str]] = ContextVar("RUNNING_COMMAND", default="")
"""Name of the command that runs, the subject of what it refuses about the rows."""
_NAME: Final = r"[dD]-[0-9]+(?:/[0-9]+|\.\.(?:[dD]-)?[0-9]+)?"
_LEADING: Final = re.compile(rf"((?:{_NAME}(?:\s+|$))+)(.*)", re.DOTALL)
_TRAILING: Final = re.compile(rf"(.*?\S)((?:\s+{_NAME})+)", re.DOTALL)


def split_names(command: DashboardCommand, text: str) -> tuple[Sequence[str], str]:
    """Return the names of jobs and questions in the arguments of a command, and the others.

    Names come first. They may also come last, where they cannot be a part of the others.
    """
    if not command.takes_names:
        return (), text
    if leading := _LEADING.fullmatch(text):
        return leading[1].split(), leading[2].strip()
    if (trailing := _TRAILING.fullmatch(text)) and not _is_valid(command, text):
        return trailing[2].split(), trailing[1]
    return (), text


def _is_valid(command: DashboardCommand, text: str) -> bool:
    try:
        for action in command.actions[:1]:
            action.takes.parse(text)
    except UsageError:
        return False
    return True


class NamedRows:
    """A screen whose selected rows are the jobs and questions that a command names."""

    def __init__(self, screen: Screen[None], rows: Sequence[tuple[int, int | None]]) -> None:
        self._screen = screen
        self._rows = rows
        self.unloaded = 0
        self.deliveries: list[int] = []
        self.page_url = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._screen, name)

    @property
    def ids(self) -> list[str]:
        """The names."""
        return [
            job_name(job) if ordinal is None else question_name(job, ordinal)
            for job, ordinal in self._rows
        ]

    @property
    def question(self) -> tuple[int, int] | None:
        """The question, if a single one is named."""
        job, ordinal = self._rows[0]
        return None if ordinal is None or len(self._rows) > 1 else (job, ordinal)

    def jobs(self, *, optional: bool = False) -> list[int]:
        """Return the jobs."""
        return list(dict.fromkeys(job for job, _ in self._rows))

    def job(self) -> int:
        """Return the job; raises UsageError for several."""
        self.check_single("job")
        return self._rows[0][0]

    def check_single(self, what: str) -> None:
        """Raise UsageError if several are named."""
        if len(self._rows) > 1:
            subject = RUNNING_COMMAND.get()
            raise UsageError(f"takes one {what} at a time, not {len(self._rows)}", subject=subject)

    def keep_marked(self, numbers: Sequence[int]) -> None:
        """Leave the marks of other rows."""

    async def after_retry(self, numbers: Sequence[int]) -> None:
        """Stay on the job that is shown."""


async def named_rows(
    rt: Runtime, command: DashboardCommand, names: Sequence[str]
) -> Sequence[tuple[int, int | None]]:
    """Return the jobs and questions of names; raises UsageError, and NotFound for unknown jobs.

    Jobs that a range lacks are left out, as on the command line.
    """
    rows: list[tuple[int, int | None]] = []
    for name in names:
        if command.is_about_questions and "/" in name:
            job, ordinal = parse_question(name)
            rows.append((await rt.read_model.resolve(job), ordinal))
            continue
        jobs = parse_jobs(name)
        if jobs[0].in_range:
            numbers = [job.number for job in jobs if job.number is not None]
            found = await rt.read_model.jobs(numbers=numbers, limit=len(numbers))
            rows += [(job.number, None) for job in sorted(found, key=lambda job: job.number)]
        else:
            rows.append((await rt.read_model.resolve(jobs[0]), None))
    return list(dict.fromkeys(rows)) or [
        (await rt.read_model.resolve(parse_job(_first(names))), None)
    ]


def _first(names: Sequence[str]) -> str:
    """Return the first job of a range that has none."""
    return names[0].partition("..")[0]
