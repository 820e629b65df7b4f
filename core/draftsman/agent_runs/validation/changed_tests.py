"""New and changed tests, run on the base commit and on the work.

base + tests of the work    must fail: the tests notice that the change is missing
work                        must pass, with the check files of the base
work + tests of the base    should pass: else the change breaks tested behavior
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Final

from draftsman.agent_runs.evidence.findings import TestEvidence, TestRun, judge
from draftsman.agent_runs.validation.commands import CommandResult
from draftsman.agent_runs.validation.fresh_clone import CommittedWork, FreshClone, fresh_clone
from draftsman.formats.amounts import counted
from draftsman.jobs.reserved_names import Owner
from draftsman.repos.repo_profile import FILES, EvidenceProfile
from draftsman.settings.profiles import CommandSettings

MAX_FILES: Final = 50
"""Maximum number of test files that are run."""
MAX_RUNS: Final = 3
"""Runs of a test file whose result is not the expected result."""
NAME: Final = "evidence"
"""Name of its entry among the validation results."""


@dataclass(frozen=True, slots=True)
class TestedTree:
    """Files of tests that are run on a commit, in which tests may be those of another commit."""

    on: str
    """`work`, `base`, `old`, the work with the tests of the base, or `own`, the work with its own
    check files."""
    commit: str
    tests_of: str | None
    files: list[str]


async def prove(
    work: CommittedWork, evidence: EvidenceProfile, judged: str
) -> tuple[TestEvidence, CommandResult]:
    """Run the changed tests both ways; return the evidence, and its entry for the validation.

    `judged` is the commit of the work, or that of the work with the check files of the base.

    Each run of a file is an event `validation_ran`. A program that is not installed makes the
    entry `missing`.
    """
    workspace = work.workspace
    folder = work.saved.profile.path
    changes = await workspace.changed_files(work.snapshot.commit)
    statuses = {file.path: file.status for file in changes if _is_in(file.path, folder)}
    tests = sorted(path for path in statuses if evidence.is_test(path))
    present = [path for path in tests if statuses[path] != "D"]
    before = [path for path in tests if statuses[path] != "A"]
    shared = [
        file.path
        for file in changes
        if evidence.is_support(file.path) or evidence.is_test(file.path)
    ]
    head = work.snapshot.commit
    base = work.snapshot.base_sha
    trees = [
        TestedTree(on="work", commit=judged, tests_of=None, files=present[:MAX_FILES]),
        TestedTree(on="base", commit=base, tests_of=judged, files=present[:MAX_FILES]),
        TestedTree(on="old", commit=judged, tests_of=base, files=before[:MAX_FILES]),
    ]
    runs: list[TestRun] = []
    missing: CommandResult | None = None
    while trees:
        tree = trees.pop(0)
        if not tree.files or missing is not None:
            continue
        commit = tree.commit
        if tree.tests_of is not None:
            commit = await workspace.mixed(commit, tree.tests_of, shared)
        async with fresh_clone(work, commit, purpose=f"tests{tree.on}") as clone:
            for file in tree.files:
                tested, result = await _run_file(work, clone, evidence, file=file, on=tree.on)
                runs.append(tested)
                missing = result if result.missing else missing
        if tree.on == "work" and judged != head:
            failed = [tested.file for tested in runs if tested.outcome == "failed"]
            trees.append(TestedTree(on="own", commit=head, tests_of=None, files=failed))
    removed = [path for path in tests if statuses[path] == "D"]
    omitted = sorted({*present[MAX_FILES:], *before[MAX_FILES:]})
    proved = judge(runs, removed, await workspace.binaries(work.snapshot), omitted)
    return proved, missing or _entry(proved, evidence)


async def _run_file(
    work: CommittedWork, clone: FreshClone, evidence: EvidenceProfile, *, file: str, on: str
) -> tuple[TestRun, CommandResult]:
    """Run a test file; again if its result is not the expected result."""
    relative = PurePosixPath(file).relative_to(work.saved.profile.path or ".")
    word = f"./{relative}" if str(relative).startswith("-") else str(relative)
    command = CommandSettings(
        name=NAME,
        command=tuple(word if part == FILES else part for part in evidence.test),
        required=evidence.required,
        timeout=evidence.timeout,
    )
    started = datetime.now(UTC).isoformat(timespec="seconds")
    codes: list[int | None] = []
    seconds = 0.0
    while True:
        result = clone.broken or await clone.run(command)
        codes.append(result.exit_code)
        seconds += result.seconds
        expected = result.passed == (on != "base")
        if expected or result.missing or clone.broken or len(codes) == MAX_RUNS:
            break
    payload = result.as_event() | {"on": on, "file": file, "exit_codes": codes}
    await work.run.event("validation_ran", payload, Owner.WORKER)
    return TestRun(file, on, tuple(codes), seconds, started), result


def _entry(proved: TestEvidence, evidence: EvidenceProfile) -> CommandResult:
    """Return the entry among the validation results; it fails for refused findings."""
    if proved.refused:
        lines = [finding.text for finding in proved.refused]
    else:
        count = len(proved.proved)
        lines = [finding.text for finding in proved.findings]
        lines.append(f"{counted(count, 'test file')} prove the change")
    return CommandResult(
        name=NAME,
        command=" ".join(evidence.test),
        exit_code=int(bool(proved.refused)),
        seconds=sum(tested.seconds for tested in proved.runs),
        output="\n".join(lines),
        required=evidence.required,
    )


def _is_in(path: str, folder: str) -> bool:
    return not folder or path.startswith(f"{folder}/")
