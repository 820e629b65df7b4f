"""Validation: the commands of a profile, run by draftsman on the commit of an agent's work."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final

from draftsman.agent_runs.evidence.findings import TestEvidence
from draftsman.agent_runs.validation.changed_checks import find_changed_checks
from draftsman.agent_runs.validation.changed_tests import prove
from draftsman.agent_runs.validation.commands import CommandResult
from draftsman.agent_runs.validation.fresh_clone import CommittedWork, FreshClone, fresh_clone
from draftsman.agent_runs.validation.line_coverage import measure
from draftsman.jobs.reserved_names import Owner
from draftsman.settings.profiles import CommandSettings
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
    judging_code: tuple[str, ...] = ()
    """Check files that are code, such as scripts of the commands."""
    hiding: tuple[str, ...] = ()
    """Files that hide a module of the commands."""
    base_tests: dict[str, int] = field(default_factory=dict)
    """Tests that run on the base commit, by the name of a command with a report."""
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
    def fewer_tests(self) -> list[str]:
        """Commands whose reports have fewer tests than on the base: `tests (118, now 3)`.

        The check files of the work may add tests that hide those which do not run any more.
        """
        fewer = [
            f"{result.name} ({self.base_tests[result.name]:,}, now {result.tests:,})"
            for result in (*self.commands, *self.base_checks)
            if result.tests is not None and result.tests < self.base_tests.get(result.name, 0)
        ]
        return list(dict.fromkeys(fewer))

    @property
    def outcome(self) -> str:
        """The outcome of the iteration: `passed`, `failed`, or `not_validated` by any command."""
        if self.failed:
            return "failed"
        return "passed" if any(result.checked for result in self.commands) else "not_validated"

    def reasons(self, names: Callable[[Sequence[str]], str]) -> Iterator[str]:
        """Yield the reasons for an approval of work that passes; `names` lists files."""
        if self.weakened:
            changed = names(self.check_files)
            yield f"Only with the changes of {changed} does this pass: {names(self.weakened)}"
        if self.judging_code:
            yield f"It changes code that decides whether it passes: {names(self.judging_code)}"
        if self.hiding:
            yield f"It adds files that hide modules of the commands: {names(self.hiding)}"
        if fewer := self.fewer_tests:
            yield f"Fewer tests run than on the base commit: {', '.join(fewer)}"
        for reason, files in self.evidence.reasons() if self.evidence is not None else ():
            yield f"{reason}: {names(files)}"

    def as_json(self) -> dict[str, Any]:
        """Return the JSON object of the step that records it."""
        return {
            "commands": [asdict(result) for result in self.commands],
            "check_files": list(self.check_files),
            "base_checks": [asdict(result) for result in self.base_checks],
            "judging_code": list(self.judging_code),
            "hiding": list(self.hiding),
            "base_tests": self.base_tests,
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
            judging_code=tuple(fields["judging_code"]),
            hiding=tuple(fields["hiding"]),
            base_tests=fields["base_tests"],
            evidence=None if evidence is None else TestEvidence.of(evidence),
        )

    def add_to(self, result: dict[str, Any]) -> dict[str, Any]:
        """Return the job's result with the validation results; `validated` if all passed."""
        if self.check_files:
            result = result | {"check_files": list(self.check_files)}
        if not self.commands:
            return result
        note = "" if any(command.checked for command in self.commands) else self._none_ran()
        return result | {
            "summary": f"{result['summary']}{note}".removeprefix("; "),
            "validated": not note and not self.failed,
            "validation": [command.as_json() for command in self.commands],
        }

    def _none_ran(self) -> str:
        """Return why no command checked anything, and what to do."""
        missing = [command.name for command in self.commands if command.missing]
        reasons = [f"install {', '.join(missing)} on the workers"] if missing else []
        reasons += [f"{item.name} {item.summary}" for item in self.commands if item.unusable]
        return f"; no validators ran: {'; '.join(reasons)}"


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
    commands = work.saved.profile.validation_commands
    async with fresh_clone(work, work.snapshot.commit, purpose="check") as clone:
        checks = await find_changed_checks(work, clone)
        results = await _run_commands(work, clone, commands)
    validation = Validation(
        commands=tuple(results),
        check_files=checks.files,
        judging_code=checks.code,
        hiding=checks.hiding,
    )
    if not validation.failed:
        validation = await _with_base_checks(work, validation)
        validation = await _with_base_tests(work, validation)
        validation = await _with_evidence(work, validation)
    await work.run.finish_step(key, validation.as_json(), Owner.WORKER)
    return validation


async def _with_base_checks(work: CommittedWork, validation: Validation) -> Validation:
    """Run the required commands again with the check files of the base commit.

    The agent could weaken those that the work changes.
    """
    required = [item for item in work.saved.profile.validation_commands if item.required]
    if not validation.check_files or not required:
        return validation
    commit = await _with_check_files_of_base(work, validation)
    async with fresh_clone(work, commit, purpose="base") as clone:
        results = await _run_commands(work, clone, required, check_files="base")
    return replace(validation, base_checks=tuple(results))


async def _with_base_tests(work: CommittedWork, validation: Validation) -> Validation:
    """Count the tests of the base commit, for commands that write a report."""
    counted = {item.name for item in validation.commands if item.tests is not None}
    commands = [item for item in work.saved.profile.validation_commands if item.name in counted]
    if not commands:
        return validation
    async with fresh_clone(work, work.snapshot.base_sha, purpose="count") as clone:
        results = await _run_commands(work, clone, commands, commit="base")
    tests = {result.name: result.tests for result in results if result.tests is not None}
    return replace(validation, base_tests=tests)


async def _with_evidence(work: CommittedWork, validation: Validation) -> Validation:
    """Run the changed tests and measure their coverage, if the profile has `evidence`.

    They run with the check files of the base commit, unless the work needs its own.
    """
    profile = work.saved.profile.evidence
    if profile is None:
        return validation
    judged = work.snapshot.commit
    if validation.check_files and not validation.weakened:
        judged = await _with_check_files_of_base(work, validation)
    evidence, entry = await prove(work, profile, judged)
    commands = (*validation.commands, entry)
    if profile.coverage is not None and not entry.missing:
        coverage, entry = await measure(work, profile.coverage, judged, required=profile.required)
        evidence = replace(evidence, coverage=coverage)
        commands = (*commands, entry)
    return replace(validation, commands=commands, evidence=evidence)


async def _with_check_files_of_base(work: CommittedWork, validation: Validation) -> str:
    """Return the commit of the work with the check files of the base."""
    snapshot = work.snapshot
    return await work.workspace.mixed(snapshot.commit, snapshot.base_sha, validation.check_files)


async def _run_commands(
    work: CommittedWork, clone: FreshClone, commands: Sequence[CommandSettings], **fields: str
) -> list[CommandResult]:
    """Run commands in a clone; each is an event, with these fields besides its result."""
    if clone.broken is not None and commands:
        return [clone.broken]
    results = []
    for command in commands:
        result = await clone.run(command)
        await work.run.event("validation_ran", result.as_event() | fields, Owner.WORKER)
        results.append(result)
    return results


def _step_key(work: CommittedWork) -> str:
    profile = digest(work.saved.profile.model_dump(mode="json"))
    return f"{STEP}{work.snapshot.tree}:{profile[:16]}"
