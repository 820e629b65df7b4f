"""Coverage of changed lines, from a patch and a report in the format of LCOV. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, Final

from draftsman.agent_runs.changes.patch_files import patch_files

MAX_DIGITS: Final = 18
"""Digits of a number in a report, which a program of the repository writes."""


@dataclass(frozen=True, slots=True)
class FileCoverage:
    """The changed lines of a file that the report measures."""

    path: str
    covered: int
    uncovered: tuple[int, ...]
    """Numbers of the changed lines that no test runs."""


@dataclass(frozen=True, slots=True)
class Coverage:
    """Coverage of the changed lines; lines that the report does not measure do not count."""

    files: tuple[FileCoverage, ...] = ()

    @property
    def covered(self) -> int:
        """Changed lines that the tests run."""
        return sum(file.covered for file in self.files)

    @property
    def measured(self) -> int:
        """Changed lines that the report measures."""
        return sum(file.covered + len(file.uncovered) for file in self.files)

    @property
    def percent(self) -> float:
        """Percentage of the measured lines that the tests run; 100 without any."""
        return 100 * self.covered / self.measured if self.measured else 100.0

    def lines(self) -> Iterator[str]:
        """Yield the uncovered lines of each file, then the total."""
        for file in self.files:
            if file.uncovered:
                yield f"{file.path}: not covered: {_ranges(file.uncovered)}"
        yield f"{self.covered} of {self.measured} changed lines are covered ({self.percent:.0f} %)"

    def as_json(self) -> dict[str, Any]:
        """Return the JSON object for steps and statements."""
        files = [
            {"path": file.path, "covered": file.covered, "uncovered": list(file.uncovered)}
            for file in self.files
        ]
        return {"covered": self.covered, "measured": self.measured, "files": files}

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> Coverage:
        """Return the recorded coverage."""
        return cls(
            tuple(
                FileCoverage(item["path"], item["covered"], tuple(item["uncovered"]))
                for item in fields["files"]
            )
        )


def changed_coverage(patch: str, report: str, root: str, folder: str) -> Coverage:
    """Return the coverage of the lines that a patch adds or changes.

    `root` is the path of the repository for the program that wrote the report, `folder` that of
    the profile in it, to which relative paths of the report refer.
    """
    measured: dict[str, dict[int, int]] = {}
    for path, hits in _records(report):
        lines = measured.setdefault(_relative(path, root, folder), {})
        for number, count in hits.items():
            lines[number] = lines.get(number, 0) + count
    files = []
    for path, numbers in added_lines(patch).items():
        report_lines = measured.get(path, {})
        counted = {number: report_lines[number] for number in numbers if number in report_lines}
        uncovered = tuple(number for number, count in counted.items() if count == 0)
        if counted:
            files.append(FileCoverage(path, len(counted) - len(uncovered), uncovered))
    return Coverage(tuple(files))


def added_lines(patch: str) -> dict[str, list[int]]:
    """Return the numbers of the added and changed lines of each file, in its new version."""
    files = patch_files(patch)
    return {file.path: [number for number, _ in file.added] for file in files if file.added}


def _records(report: str) -> Iterator[tuple[str, dict[int, int]]]:
    """Yield the path of each file of a report, with the number of runs of its lines."""
    path = ""
    hits = dict[int, int]()
    for line in report.splitlines():
        key, _, value = line.strip().partition(":")
        if key == "SF":
            path = value
            hits = {}
        elif key == "DA":
            number, _, count = value.partition(",")
            count = count.partition(",")[0]
            if all(word.isdecimal() and len(word) <= MAX_DIGITS for word in (number, count)):
                hits[int(number)] = int(count)
        elif key == "end_of_record" and path:
            yield path, hits
            path = ""


def _relative(path: str, root: str, folder: str) -> str:
    if path.startswith("/"):
        return path.removeprefix(f"{root.rstrip('/')}/")
    return str(PurePosixPath(folder, path))


def _ranges(numbers: tuple[int, ...]) -> str:
    """Return sorted numbers as ranges: `3-5, 9`; at most ten."""
    ranges: list[list[int]] = []
    for number in numbers:
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    named = [f"{first}" if first == last else f"{first}-{last}" for first, last in ranges[:10]]
    return ", ".join(named) + (f" and {len(ranges) - 10} more" if len(ranges) > 10 else "")
