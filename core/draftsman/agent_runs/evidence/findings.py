"""Findings about the tests of a change, such as a test that proves nothing. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from draftsman.agent_runs.evidence.coverage import Coverage


class FindingKind(StrEnum):
    """Kinds of findings."""

    FAILS_ON_WORK = "fails_on_work"
    PASSES_ON_BASE = "passes_on_base"
    FLAKY = "flaky"
    REMOVED = "removed"
    OLD_FORM_FAILS = "old_form_fails"
    NEEDS_CHECK_FILES = "needs_check_files"
    BINARY = "binary"
    NOT_RUN = "not_run"


REFUSED: Final = (FindingKind.FAILS_ON_WORK, FindingKind.PASSES_ON_BASE)
"""Findings for which the work goes back to the agent, if the profile requires evidence."""
TEXTS: Final = {
    FindingKind.FAILS_ON_WORK: "fails on the work, or has no tests",
    FindingKind.PASSES_ON_BASE: "passes on the base commit too, so it does not prove the change",
    FindingKind.FLAKY: "is flaky: it passes and fails on the same files",
    FindingKind.REMOVED: "was removed",
    FindingKind.OLD_FORM_FAILS: "as it was on the base commit fails on the work",
    FindingKind.NEEDS_CHECK_FILES: "passes only with the check files of the work",
    FindingKind.BINARY: "is binary",
    FindingKind.NOT_RUN: "was not run, because too many tests changed",
}
REASONS: Final = {
    FindingKind.FLAKY: "Its tests are flaky",
    FindingKind.REMOVED: "It removes tests",
    FindingKind.OLD_FORM_FAILS: "It changes tests that fail in their old form",
    FindingKind.NEEDS_CHECK_FILES: "Its tests pass only with its own check files",
    FindingKind.BINARY: "It adds or changes binary files",
    FindingKind.NOT_RUN: "Its tests were not run",
}
"""Reasons for an approval, by the kind of the finding."""


@dataclass(frozen=True, slots=True)
class TestRun:
    """The runs of a test file on a tree.

    It is the `base`, the `work`, the work with the test in its `old` form, or the work with its
    `own` check files.
    `exit_codes` has an entry for each run; None: stopped after its timeout.
    """

    __test__ = False

    file: str
    on: str
    exit_codes: tuple[int | None, ...]
    seconds: float
    at: str

    @property
    def outcome(self) -> str:
        """`passed`, `failed`, or `flaky` if its runs differ."""
        passed = {code == 0 for code in self.exit_codes}
        if len(passed) > 1:
            return "flaky"
        return "passed" if passed == {True} else "failed"


@dataclass(frozen=True, slots=True)
class EvidenceFinding:
    """A finding about a file."""

    kind: FindingKind
    file: str

    @property
    def text(self) -> str:
        """The finding as a sentence without a period."""
        return f"{self.file} {TEXTS[self.kind]}"


@dataclass(frozen=True, slots=True)
class TestEvidence:
    """The runs of the tests of a change, and the findings."""

    __test__ = False

    runs: tuple[TestRun, ...] = ()
    findings: tuple[EvidenceFinding, ...] = ()
    coverage: Coverage | None = None
    """Coverage of the changed lines, if the profile measures it."""

    @property
    def refused(self) -> list[EvidenceFinding]:
        """The findings for which the work goes back to the agent."""
        return [item for item in self.findings if item.kind in REFUSED]

    @property
    def proved(self) -> list[str]:
        """The test files that fail on the base and pass on the work."""
        outcomes = {(run.file, run.on): run.outcome for run in self.runs}
        files = [run.file for run in self.runs if run.on == "work" and run.outcome == "passed"]
        return [file for file in files if outcomes.get((file, "base")) == "failed"]

    def reasons(self) -> Iterator[tuple[str, list[str]]]:
        """Yield the reasons for an approval, each with its files."""
        for kind, reason in REASONS.items():
            files = sorted({item.file for item in self.findings if item.kind is kind})
            if files:
                yield reason, files

    def as_json(self) -> dict[str, Any]:
        """Return the JSON object for steps and statements."""
        return {
            "runs": [
                {
                    "file": run.file,
                    "on": run.on,
                    "outcome": run.outcome,
                    "exit_codes": list(run.exit_codes),
                    "seconds": round(run.seconds, 3),
                    "at": run.at,
                }
                for run in self.runs
            ],
            "findings": [{"kind": str(item.kind), "file": item.file} for item in self.findings],
            "coverage": None if self.coverage is None else self.coverage.as_json(),
        }

    @classmethod
    def of(cls, fields: dict[str, Any]) -> TestEvidence:
        """Return the recorded evidence."""
        runs = [
            TestRun(
                item["file"], item["on"], tuple(item["exit_codes"]), item["seconds"], item["at"]
            )
            for item in fields["runs"]
        ]
        findings = [
            EvidenceFinding(FindingKind(item["kind"]), item["file"]) for item in fields["findings"]
        ]
        coverage = fields["coverage"]
        return cls(
            tuple(runs), tuple(findings), None if coverage is None else Coverage.of(coverage)
        )


def judge(
    runs: Sequence[TestRun], removed: Iterable[str], binaries: Iterable[str], not_run: Iterable[str]
) -> TestEvidence:
    """Return the evidence of these runs; `left` are test files that were not run."""
    unexpected = {
        ("work", "failed"): FindingKind.FAILS_ON_WORK,
        ("base", "passed"): FindingKind.PASSES_ON_BASE,
        ("old", "failed"): FindingKind.OLD_FORM_FAILS,
    }
    findings = []
    need_own = {run.file for run in runs if run.on == "own" and run.outcome == "passed"}
    for run in runs:
        kind = unexpected.get((run.on, run.outcome))
        if kind is FindingKind.FAILS_ON_WORK and run.file in need_own:
            kind = FindingKind.NEEDS_CHECK_FILES
        if run.outcome == "flaky":
            kind = FindingKind.FLAKY
        if kind is not None:
            findings.append(EvidenceFinding(kind, run.file))
    findings += [EvidenceFinding(FindingKind.REMOVED, file) for file in removed]
    findings += [EvidenceFinding(FindingKind.BINARY, file) for file in binaries]
    findings += [EvidenceFinding(FindingKind.NOT_RUN, file) for file in not_run]
    return TestEvidence(tuple(runs), tuple(dict.fromkeys(findings)))
