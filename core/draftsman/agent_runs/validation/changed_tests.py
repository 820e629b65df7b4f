"""New and changed tests, run on the base commit and on the work.

base + tests of the work    must fail: the tests notice that the change is missing
work                        must pass
work + tests of the base    should pass: else the change breaks tested behavior
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Final

from draftsman.agent_runs.clones.workspace import Snapshot, Workspace
from draftsman.agent_runs.evidence.findings import TestEvidence, TestRun, judge
from draftsman.agent_runs.validation.commands import CommandResult
from draftsman.agent_runs.validation.fresh_clone import FreshClone, fresh_clone
from draftsman.handlers.worker_run import WorkerRun
from draftsman.jobs.reserved_names import Owner
from draftsman.repos.repo_profile import FILES, EvidenceProfile, SavedProfile
from draftsman.settings.profiles import CommandSettings

MAX_FILES: Final = 50
"""Maximum number of test files that are run."""
MAX_RUNS: Final = 3
"""Runs of a test file whose result is not the expected result."""
NAME: Final = "evidence"
"""Name of its entry among the validation results."""


async def prove(
    run: WorkerRun,
    workspace: Workspace,
    snapshot: Snapshot,
    saved: SavedProfile,
    evidence: EvidenceProfile,
    *,
    network: bool | tuple[str, ...],
) -> tuple[TestEvidence, CommandResult]:
    """Run the changed tests both ways; return the evidence, and its entry for the validation.

    Each run of a file is an event `validation_ran`. A program that is not installed makes the
    entry `missing`.
    """
    changes = await workspace.changes(snapshot)
    inside = {path: status for path, status in changes.items() if _is_in(path, saved.profile.path)}
    tests = sorted(path for path in inside if evidence.is_test(path))
    present = [path for path in tests if inside[path] != "D"]
    before = [path for path in tests if inside[path] != "A"]
    shared = [path for path in changes if evidence.is_support(path) or evidence.is_test(path)]
    work = snapshot.commit
    base = snapshot.base_sha
    plan = (
        ("work", work, None, present[:MAX_FILES]),
        ("base", base, work, present[:MAX_FILES]),
        ("old", work, base, before[:MAX_FILES]),
    )
    runs: list[TestRun] = []
    missing: CommandResult | None = None
    for on, commit, other, files in plan:
        if not files or missing is not None:
            continue
        tree = commit if other is None else await workspace.mixed(commit, other, shared)
        async with fresh_clone(
            run, workspace, saved, tree, purpose=f"tests{on}", network=network
        ) as clone:
            for file in files:
                tested, result = await _run_file(run, clone, saved, evidence, file, on)
                runs.append(tested)
                missing = result if result.missing else missing
    removed = [path for path in tests if inside[path] == "D"]
    left = sorted({*present[MAX_FILES:], *before[MAX_FILES:]})
    proved = judge(runs, removed, await workspace.binaries(snapshot), left)
    return proved, missing or _entry(proved, evidence)


async def _run_file(
    run: WorkerRun,
    clone: FreshClone,
    saved: SavedProfile,
    evidence: EvidenceProfile,
    file: str,
    on: str,
) -> tuple[TestRun, CommandResult]:
    """Run a test file; again if its result is not the expected result."""
    relative = PurePosixPath(file).relative_to(saved.profile.path or ".")
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
    await run.event("validation_ran", payload, Owner.WORKER)
    return TestRun(file, on, tuple(codes), seconds, started), result


def _entry(proved: TestEvidence, evidence: EvidenceProfile) -> CommandResult:
    """Return the entry among the validation results; it fails for refused findings."""
    refused = proved.refused
    count = len(proved.proved)
    lines = [item.text for item in proved.findings]
    lines.append(f"{count} test file{'' if count == 1 else 's'} prove the change")
    if refused:
        lines = [item.text for item in refused]
    command = " ".join(evidence.test)
    seconds = sum(item.seconds for item in proved.runs)
    output = "\n".join(lines)
    return CommandResult(NAME, command, int(bool(refused)), seconds, output, evidence.required)


def _is_in(path: str, folder: str) -> bool:
    return not folder or path.startswith(f"{folder}/")
