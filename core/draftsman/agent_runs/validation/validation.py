"""Validation: the commands of a profile, run by draftsman on the commit of an agent's work."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from draftsman.agent_runs.evidence.findings import TestEvidence
from draftsman.agent_runs.validation.changed_tests import prove
from draftsman.agent_runs.validation.commands import CommandResult
from draftsman.agent_runs.validation.fresh_clone import CommittedWork, fresh_clone
from draftsman.agent_runs.validation.line_coverage import measure
from draftsman.jobs.reserved_names import Owner
from draftsman.repos.repo_profile import check_files
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
        return [result for result in self.commands if result.required and not result.passed]

    @property
    def weakened(self) -> list[str]:
        """Required commands that pass with the changed check files alone."""
        return [result.name for result in self.base_checks if not result.passed]

    @property
    def outcome(self) -> str:
        """The outcome of the iteration: `passed`, `failed`, or `not_validated` by any command."""
        if self.failed:
            return "failed"
        return "not_validated" if all(result.missing for result in self.commands) else "passed"

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
            "commands": [asdict(result) for result in self.commands],
            "check_files": list(self.check_files),
            "base_checks": [asdict(result) for result in self.base_checks],
            "evidence": None if self.evidence is None else self.evidence.as_json(),
        }

    @classmethod
    def of(cls, fields: dict[str, Any]) -> Validation:
        """Return the recorded validation."""
        evidence = fields["evidence"]
        return cls(
            commands=tuple(CommandResult(**result) for result in fields["commands"]),
            check_files=tuple(fields["check_files"]),
            base_checks=tuple(CommandResult(**result) for result in fields["base_checks"]),
            evidence=None if evidence is None else TestEvidence.of(evidence),
        )

    def add_to(self, result: dict[str, Any]) -> dict[str, Any]:
        """Return the job's result with the validation results; `validated` if all passed."""
        if self.check_files:
            result = result | {"check_files": list(self.check_files)}
        if not self.commands:
            return result
        missing = [command.name for command in self.commands if command.missing]
        note = ""
        if len(missing) == len(self.commands):
            note = f"; no validators ran: install {', '.join(missing)} on the workers"
        return result | {
            "summary": f"{result['summary']}{note}".removeprefix("; "),
            "validated": not note and not self.failed,
            "validation": [command.as_json() for command in self.commands],
        }


async def recorded_validation(work: CommittedWork) -> Validation | None:
    """Return the validation of this tree by this profile, if an earlier run recorded it."""
    step = (await work.run.steps(Owner.WORKER)).get(_step_key(work))
    return Validation.of(step.result) if step is not None and step.status == "done" else None


async def validate(work: CommittedWork) -> Validation:
    """Run the validation commands in a fresh clone of the commit, and record the results.

    Each result is an event.
    """
    key = _step_key(work)
    await work.run.note_step(key, owner=Owner.WORKER)
    changed_paths = await work.workspace.changed_paths(work.snapshot)
    validation = Validation(
        commands=tuple(await _run_commands(work, work.snapshot.commit, purpose="check")),
        check_files=tuple(check_files(changed_paths, work.saved.profile)),
    )
    if not validation.failed:
        validation = await _with_base_checks(work, validation)
        validation = await _with_evidence(work, validation)
    await work.run.finish_step(key, validation.as_json(), Owner.WORKER)
    return validation


async def _with_base_checks(work: CommittedWork, validation: Validation) -> Validation:
    """Run the required commands again with the check files of the base commit.

    The agent could weaken those that the work changes.
    """
    required = [result.name for result in validation.commands if result.required]
    if not validation.check_files or not required:
        return validation
    snapshot = work.snapshot
    mixed = await work.workspace.mixed(snapshot.commit, snapshot.base_sha, validation.check_files)
    results = await _run_commands(work, mixed, purpose="base", only=required)
    return replace(validation, base_checks=tuple(results))


async def _with_evidence(work: CommittedWork, validation: Validation) -> Validation:
    """Run the changed tests and measure their coverage, if the profile has `evidence`."""
    profile = work.saved.profile.evidence
    if profile is None:
        return validation
    evidence, entry = await prove(work, profile)
    commands = (*validation.commands, entry)
    if profile.coverage is not None and not entry.missing:
        coverage, entry = await measure(work, profile.coverage, required=profile.required)
        evidence = replace(evidence, coverage=coverage)
        commands = (*commands, entry)
    return replace(validation, commands=commands, evidence=evidence)


async def _run_commands(
    work: CommittedWork, commit: str, *, purpose: str, only: Sequence[str] | None = None
) -> list[CommandResult]:
    """Run the commands on a commit: all, or `only` these, with the check files of the base."""
    commands = [
        command
        for command in work.saved.profile.validation_commands
        if only is None or command.name in only
    ]
    if not commands:
        return []
    results = []
    async with fresh_clone(work, commit, purpose=purpose) as clone:
        if clone.broken is not None:
            return [clone.broken]
        for command in commands:
            result = await clone.run(command)
            base_checks = {} if only is None else {"check_files": "base"}
            await work.run.event("validation_ran", result.as_event() | base_checks, Owner.WORKER)
            results.append(result)
    return results


def _step_key(work: CommittedWork) -> str:
    profile = digest(work.saved.profile.model_dump(mode="json"))
    return f"{STEP}{work.snapshot.tree}:{profile[:16]}"
