"""Validation: the commands of a profile, run by draftsman on the commit of an agent's work."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from draftsman.agent_runs.clones.workspace import Snapshot, Workspace
from draftsman.agent_runs.evidence.findings import TestEvidence
from draftsman.agent_runs.validation.changed_tests import prove
from draftsman.agent_runs.validation.commands import CommandResult
from draftsman.agent_runs.validation.fresh_clone import fresh_clone
from draftsman.agent_runs.validation.line_coverage import measure
from draftsman.handlers.worker_run import WorkerRun
from draftsman.jobs.reserved_names import Owner
from draftsman.repos.repo_profile import SavedProfile, check_files
from draftsman.text import digest

STEP: Final = "agent:validation:"
"""Prefix of the steps that record the validation of a tree by a profile."""


@dataclass(frozen=True, slots=True)
class Validation:
    """The results of the validation commands and of the changed tests on a commit."""

    commands: tuple[CommandResult, ...] = ()
    check_files: tuple[str, ...] = ()
    """The check files that the work changes."""
    base_checks: tuple[CommandResult, ...] = ()
    """The required commands again, with the check files of the base commit."""
    evidence: TestEvidence | None = None
    """Evidence of the changed tests, if the profile asks for it and the commands passed."""

    @property
    def failed(self) -> list[CommandResult]:
        """The required commands that failed; the work must not be published."""
        return [item for item in self.commands if item.required and not item.passed]

    @property
    def weakened(self) -> list[str]:
        """Required commands that pass with the changed check files alone."""
        return [item.name for item in self.base_checks if not item.passed]

    @property
    def outcome(self) -> str:
        """The outcome of the iteration: `passed`, `failed`, or `not_validated` by any command."""
        if self.failed:
            return "failed"
        return "not_validated" if all(item.missing for item in self.commands) else "passed"

    def reasons(self, names: Callable[[Sequence[str]], str]) -> Iterator[str]:
        """Yield the reasons for an approval of work that passes; `names` lists files."""
        if self.weakened:
            changed = names(self.check_files)
            yield f"Only with the changes of {changed} does this pass: {names(self.weakened)}"
        for reason, files in self.evidence.reasons() if self.evidence is not None else ():
            yield f"{reason}: {names(files)}"

    def as_json(self) -> dict[str, Any]:
        """Return the JSON object of the step that records it."""
        return {
            "commands": [asdict(item) for item in self.commands],
            "check_files": list(self.check_files),
            "base_checks": [asdict(item) for item in self.base_checks],
            "evidence": None if self.evidence is None else self.evidence.as_json(),
        }

    @classmethod
    def of(cls, fields: dict[str, Any]) -> Validation:
        """Return the recorded validation."""
        evidence = fields["evidence"]
        return cls(
            tuple(CommandResult(**item) for item in fields["commands"]),
            tuple(fields["check_files"]),
            tuple(CommandResult(**item) for item in fields["base_checks"]),
            None if evidence is None else TestEvidence.of(evidence),
        )

    def add_to(self, result: dict[str, Any]) -> dict[str, Any]:
        """Return the job's result with the validation results; `validated` if all passed."""
        if self.check_files:
            result = result | {"check_files": list(self.check_files)}
        if not self.commands:
            return result
        missing = [item.name for item in self.commands if item.missing]
        note = ""
        if len(missing) == len(self.commands):
            note = f"; no validators ran: install {', '.join(missing)} on the workers"
        return result | {
            "summary": f"{result['summary']}{note}".removeprefix("; "),
            "validated": not note and not self.failed,
            "validation": [item.as_json() for item in self.commands],
        }


async def recorded_validation(
    run: WorkerRun, snapshot: Snapshot, saved: SavedProfile
) -> Validation | None:
    """Return the validation of this tree by this profile, if an earlier run recorded it."""
    step = (await run.steps(Owner.WORKER)).get(_step_key(snapshot, saved))
    return Validation.of(step.result) if step is not None and step.status == "done" else None


async def validate(
    run: WorkerRun,
    workspace: Workspace,
    snapshot: Snapshot,
    saved: SavedProfile,
    *,
    network: bool | tuple[str, ...],
) -> Validation:
    """Run the validation commands in a fresh clone of the commit, and record the results.

    Each result is an event. If the work changes check files and passes, the required commands
    run again with the check files of the base commit, which the agent could not weaken. Then the
    changed tests run, if the profile has `evidence`.
    """
    key = _step_key(snapshot, saved)
    await run.note_step(key, owner=Owner.WORKER)
    changed = tuple(check_files(await workspace.changed_paths(snapshot), saved.profile))
    results = await _run_commands(run, workspace, saved, snapshot.commit, "check", network=network)
    validation = Validation(tuple(results), changed)
    required = [item.name for item in results if item.required]
    if changed and required and not validation.failed:
        mixed = await workspace.mixed(snapshot.commit, snapshot.base_sha, changed)
        again = await _run_commands(
            run, workspace, saved, mixed, "base", only=required, network=network
        )
        validation = Validation(validation.commands, changed, tuple(again))
    if (asked := saved.profile.evidence) is not None and not validation.failed:
        evidence, entry = await prove(run, workspace, snapshot, saved, asked, network=network)
        commands = (*validation.commands, entry)
        if (coverage := asked.coverage) is not None and not entry.missing:
            covered, measured = await measure(
                *(run, workspace, snapshot, saved, coverage),
                required=asked.required,
                network=network,
            )
            evidence = replace(evidence, coverage=covered)
            commands = (*commands, measured)
        validation = Validation(commands, changed, validation.base_checks, evidence)
    await run.finish_step(key, validation.as_json(), Owner.WORKER)
    return validation


async def _run_commands(
    run: WorkerRun,
    workspace: Workspace,
    saved: SavedProfile,
    commit: str,
    purpose: str,
    *,
    only: Sequence[str] | None = None,
    network: bool | tuple[str, ...],
) -> list[CommandResult]:
    """Run the commands on a commit: all, or `only` these, with the check files of the base."""
    commands = [
        command
        for command in saved.profile.validation_commands
        if only is None or command.name in only
    ]
    if not commands:
        return []
    results = []
    async with fresh_clone(
        run, workspace, saved, commit, purpose=purpose, network=network
    ) as clone:
        if clone.broken is not None:
            return [clone.broken]
        for command in commands:
            result = await clone.run(command)
            base_checks = {} if only is None else {"check_files": "base"}
            await run.event("validation_ran", result.as_event() | base_checks, Owner.WORKER)
            results.append(result)
    return results


def _step_key(snapshot: Snapshot, saved: SavedProfile) -> str:
    profile = digest(saved.profile.model_dump(mode="json"))
    return f"{STEP}{snapshot.tree}:{profile[:16]}"
