"""What validation commands said, as people read it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from draftsman_tui.common.output import styled

if TYPE_CHECKING:
    from collections.abc import Sequence

    from draftsman.domain.repos.repo_catalog import RepoLocation
    from draftsman.domain.repos.repo_profile import RepoProfile
    from draftsman.handlers.run_agent.commands import CommandResult
    from draftsman_tui.cli.app import App


def print_checks(app: App, ran: Sequence[CommandResult]) -> None:
    """Print what each command said."""
    styles = {"passes": "green", "fails": "red", "not here": "yellow"}
    rows = []
    for one in ran:
        said = "passes" if one.passed else "not here" if one.missing else "fails"
        kind = "left out" if one.missing else "required" if one.required else "optional"
        summary = "" if one.passed else one.summary
        rows.append((one.name, styled(said, styles[said]), kind, f"{one.seconds:.1f} s", summary))
    if rows:
        app.out.table(("CHECK", "", "", "TIME", "WHY"), rows, flexible=4, right=(3,))


def without_validators(app: App, place: RepoLocation, profile: RepoProfile) -> str | None:
    """Return what applies where a profile has no validation commands; None where it has some."""
    if profile.validation_commands:
        return None
    name = place.repo.full_name
    key = f'[profiles."{name}"]' if name in app.settings.profiles else "[profile]"
    kept = app.settings.profile_of(name).validation_commands
    if not kept:
        return f"no validators, and none in {key} of the configuration; see docs/repos.md"
    names = ", ".join(one.name for one in kept)
    return f"no validators of its own; agents use {key} of the configuration: {names}"
