"""Checks of a repository before it is added, with the setup of its tools."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from draftsman.errors import Refused
from draftsman.formats.invisible import one_line
from draftsman.repos.tool_setup import ToolSetup, parse_setup
from draftsman_tui.cli import prompts
from draftsman_tui.cli.perform import confirm
from draftsman_tui.terminal.output import styled

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from draftsman.agent_runs.validation.commands import CommandResult
    from draftsman.agent_runs.validation.profile_check import RepoInspection
    from draftsman.repos.repo_catalog import Repo
    from draftsman.repos.repo_profile import RepoProfile
    from draftsman.runtime import Runtime
    from draftsman_tui.cli.app import App


@dataclass(frozen=True, slots=True)
class CheckedProfile:
    """A profile to save, and what its commands did on the unchanged repository."""

    profile: RepoProfile
    commit: str | None = None
    """The commit that was checked; None for none."""
    results: Sequence[CommandResult] = ()
    setup: ToolSetup | None = None
    """How its tools are set up, or could be."""
    problem: str = ""
    """Why the setup is not saved; "" if it is."""

    def setup_data(self) -> dict[str, Any] | None:
        """Return the setup for JSON."""
        if self.setup is None:
            return None
        return {
            "command": self.setup.text,
            "file": self.setup.file or None,
            "saved": not self.problem,
            "problem": self.problem or None,
        }

    @property
    def enforced(self) -> list[str]:
        """The names of the checks that work has to pass."""
        return [check.name for check in self.profile.validation_commands if check.required]

    def notes(self, name: str) -> Iterator[str]:
        """Yield what is enforced, what is not, and how to set up the tools of what is not."""
        failing = [result for result in self.results if not result.passed]
        setup = self.setup
        if setup is not None and not self.problem:
            found = f" ({setup.file})" if setup.file else ""
            yield f"each clone is set up by: {one_line(setup.text)}{found}"
        if not failing:
            return
        if self.enforced:
            yield f"enforced on all work: {', '.join(self.enforced)}"
        else:
            yield "nothing is enforced: no check passes on the unchanged repository"
        yield f"not enforced: {', '.join(map(_failure, failing))}"
        again = f"draftsman repos add {shlex.quote(name)} --replace"
        if setup is None:
            yield f"no lock file tells how to set up its tools; to do so: {again} --setup COMMAND"
        elif self.problem:
            yield f"{self.problem}; to set up its tools: {again} --setup {shlex.quote(setup.text)}"
        else:
            yield f"to enforce them, mend them and repeat: {again}"


def print_checks(app: App, results: Sequence[CommandResult]) -> None:
    """Print a table of validation results."""
    styles = {"passed": "green", "failed": "red", "not installed": "yellow", "not run": "red"}
    rows = []
    for result in results:
        failed = "failed" if result.checked else "not installed" if result.missing else "not run"
        outcome = "passed" if result.passed else failed
        kind = "left out" if result.missing else "required" if result.required else "optional"
        summary = "" if result.passed else result.summary
        duration = f"{result.seconds:.1f} s"
        rows.append((result.name, styled(outcome, styles[outcome]), kind, duration, summary))
    if rows:
        app.out.table(("CHECK", "RESULT", "", "TIME", "OUTPUT"), rows, flexible=4, right=(3,))


def _failure(result: CommandResult) -> str:
    reason = "not installed" if result.missing else one_line(result.summary)
    return f"{one_line(result.name)} ({reason})"


async def checked_profile(
    app: App,
    rt: Runtime,
    repo: Repo,
    path: str,
    profile_from_file: RepoProfile | None,
    options: dict[str, Any],
) -> CheckedProfile:
    """Return the profile to save, after its commands ran; raises Refused, UsageError."""
    from draftsman.agent_runs.validation.profile_check import inspect_repository, select_passing

    async with inspect_repository(
        rt.settings, repo.remote_url, repo.default_branch, profile_from_file
    ) as inspection:
        for text in inspection.missing_parts:
            app.out.info(f"jobs work without {text}")
        setup = inspection.detect_tools(path)
        if options["setup"] is not None:
            setup = parse_setup(options["setup"])
        profile = profile_from_file or inspection.detect_profile(path, setup)
        if options["no_check"]:
            return CheckedProfile(profile, setup=setup)
        _confirm_commands(app, repo, profile, options["yes"])
        if profile_from_file is not None:
            return await _checked_file(app, inspection, profile_from_file)
        problem = await _set_up(app, inspection, repo, profile, setup, options)
        if problem:
            profile = inspection.detect_profile(path)
        _announce(app, inspection, profile)
        results = await inspection.run_checks(profile)
    profile, results = select_passing(profile, results)
    return CheckedProfile(profile, inspection.commit, results, setup, problem)


async def _checked_file(
    app: App, inspection: RepoInspection, profile: RepoProfile
) -> CheckedProfile:
    """Check the profile of a file, which is saved only if its required commands pass."""
    _announce(app, inspection, profile)
    results = await inspection.check(profile)
    if failing := [result.name for result in results if result.required and not result.passed]:
        print_checks(app, results)
        raise Refused(
            f"not saved: {', '.join(failing)} failed on the unchanged repository; fix it, set"
            " required = false, or use --no-check"
        )
    return CheckedProfile(profile, inspection.commit, results)


async def _set_up(
    app: App,
    inspection: RepoInspection,
    repo: Repo,
    profile: RepoProfile,
    setup: ToolSetup | None,
    options: dict[str, Any],
) -> str:
    """Set up the tools in the clone; return why the setup is not saved, "" if it is.

    A detected setup that does not work here is left out; one that was given is refused.
    """
    if setup is None:
        return ""
    is_given = options["setup"] is not None
    is_asked = app.out.interactive and not (is_given or options["yes"])
    if is_asked and repo.remote_url.startswith("/"):
        question = f"Set up the tools in each clone by {setup.text} ({setup.file})?"
        if not prompts.is_confirmed(question, default=True):
            return "its tools are not set up"
    if app.out.on_screen:
        app.out.info(f"setting up its tools: {setup.text}")
    failed = await inspection.set_up(profile)
    if failed is None:
        return ""
    reason = "its program is not installed" if failed.missing else failed.summary
    problem = f"the setup {setup.text} failed: {reason}"
    if is_given:
        raise Refused(f"not saved: {problem}; use a command that works in a clone, or --no-check")
    return problem


def _confirm_commands(app: App, repo: Repo, profile: RepoProfile, yes: bool) -> None:
    """Ask before running commands of a remote repository; raises Refused, UsageError."""
    from draftsman.settings.profiles import without_report

    commands = [check.command for check in profile.setup_commands]
    commands += [check.command for check in profile.validation_commands]
    if repo.remote_url.startswith("/") or not commands:
        return
    names = ", ".join(shlex.join(without_report(command)) for command in commands)
    question = f"Run these commands in a clone on this machine: {names}?"
    confirm(app, question, yes=yes, required=True)


def _announce(app: App, inspection: RepoInspection, profile: RepoProfile) -> None:
    if profile.validation_commands and app.out.on_screen:
        names = ", ".join(check.name for check in profile.validation_commands)
        app.out.info(f"running {names} in a clone at {inspection.commit[:12]}")
