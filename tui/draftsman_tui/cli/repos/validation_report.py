"""Text rendering of validation results."""

from __future__ import annotations

from typing import TYPE_CHECKING

from draftsman_tui.terminal.output import styled

if TYPE_CHECKING:
    from collections.abc import Sequence

    from draftsman.agent_runs.validation.commands import CommandResult
    from draftsman.repos.repo_catalog import RepoLocation
    from draftsman.repos.repo_profile import RepoProfile
    from draftsman_tui.cli.app import App


def print_checks(app: App, results: Sequence[CommandResult]) -> None:
    """Print a table of validation results."""
    styles = {"passed": "green", "failed": "red", "not installed": "yellow"}
    rows = []
    for result in results:
        outcome = "passed" if result.passed else "not installed" if result.missing else "failed"
        kind = "left out" if result.missing else "required" if result.required else "optional"
        summary = "" if result.passed else result.summary
        duration = f"{result.seconds:.1f} s"
        rows.append((result.name, styled(outcome, styles[outcome]), kind, duration, summary))
    if rows:
        app.out.table(("CHECK", "RESULT", "", "TIME", "OUTPUT"), rows, flexible=4, right=(3,))


def without_validators(app: App, location: RepoLocation, profile: RepoProfile) -> str | None:
    """Describe the fallback for a profile without validation commands; None if it has any."""
    if profile.validation_commands:
        return None
    repo = location.repo
    name, configured = app.settings.profile_of(repo.host, repo.full_name)
    key = f'[profiles."{name}"]' if name else "[profile]"
    commands = configured.validation_commands
    if not commands:
        return f"no validation commands, and none in {key} of the configuration; see docs/repos.md"
    names = ", ".join(command.name for command in commands)
    return f"no validation commands; agents use those in {key} of the configuration: {names}"
