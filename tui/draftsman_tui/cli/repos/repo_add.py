"""The `repos add` command: detects a profile and validates it before saving."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from draftsman.errors import Conflict, Refused, UsageError
from draftsman_tui.cli import prompts
from draftsman_tui.cli.app import App, command
from draftsman_tui.cli.repos.validation_report import print_checks, without_validators
from draftsman_tui.terminal import params
from draftsman_tui.terminal.output import as_data, line, styled

if TYPE_CHECKING:
    from collections.abc import Sequence

    from draftsman.agent_runs.validation.commands import CommandResult
    from draftsman.agent_runs.validation.profile_check import RepoInspection
    from draftsman.repos.repo_catalog import Repo, RepoLocation
    from draftsman.repos.repo_profile import RepoProfile
    from draftsman.runtime import Runtime


@command(
    "add",
    examples=(
        "draftsman repos add .",
        "draftsman repos add ./services/api",
        "draftsman repos add https://github.com/acme/pay --branch develop --yes",
        "draftsman repos add pay --profile pay.json --replace",
    ),
)
@click.argument("place", metavar="PATH|URL", type=params.TEXT)
@click.option("--path", type=params.TEXT, help="Folder in a monorepo that this profile is for.")
@click.option("--name", type=params.TEXT, help="Name for a local repository.")
@click.option("--branch", type=params.TEXT, help="Default branch.")
@click.option(
    "--profile",
    "file",
    metavar="FILE",
    type=click.Path(path_type=Path, allow_dash=True),
    help="Profile as JSON, as printed by repos show --json, instead of detecting it.",
)
@click.option("--replace", is_flag=True, help="Replace the existing profile.")
@click.option("--no-check", is_flag=True, help="Save without running the commands.")
@click.option("-y", "--yes", is_flag=True, help="Run commands of remote repositories.")
async def add(app: App, place: str, file: Path | None, **options: Any) -> None:
    """Add a repository.

    A profile is detected from the files of the repository. Its validation commands are run in a
    clone before it is saved: commands that are not installed are left out, and commands that fail
    on the unchanged repository become optional.
    """
    fields = params.json_object(params.read_text(file), str(file)) if file is not None else None
    async with app.runtime() as rt:
        repo, path = await _resolve(rt, place, options)
        profile_from_file = None if fields is None else _profile_of(fields, path)
        existing = await _existing_repo(rt, repo, path, replacing=options["replace"])
        profile, commit, results = await _validated(app, rt, repo, path, profile_from_file, options)
        actor = await rt.actor()
        checks = [result.as_json() for result in results if not result.missing]
        if existing is not None and options["replace"]:
            await rt.repos.save_profile(existing, profile, actor, commit=commit, checks=checks)
            repo = existing
        else:
            repo = await rt.repos.add(repo, profile, actor, commit=commit, checks=checks)
    _print_added(app, repo, profile, results)


async def _resolve(rt: Runtime, place: str, options: dict[str, Any]) -> tuple[Repo, str]:
    """Return the repository to add and the folder of its profile."""
    from draftsman.agent_runs.validation.profile_check import find_local_repository
    from draftsman.repos import repo_url
    from draftsman.repos.repo_catalog import Repo
    from draftsman.repos.repo_profile import folder

    name, inner = options["name"], ""
    if Path(place).expanduser().is_dir():
        repo, inner = await find_local_repository(Path(place).expanduser())
        if name:
            repo = replace(repo, host="", owner="", name=_normalized_name(name))
    elif repo_url.is_repo_url(place) and not place.startswith(("/", "~", ".", "file:")):
        repo = Repo.at(repo_url.parse(place))
        if name:
            raise UsageError("--name applies to local repositories only")
    elif place.startswith(("/", "~", ".", "file:")):
        raise UsageError(f"{place}: directory not found; use a local directory or a URL")
    else:
        location = await rt.repos.place(place)
        repo, inner = location.repo, location.path
    try:
        path = folder(options["path"]) if options["path"] else inner
    except ValueError as error:
        raise UsageError(f"--path {options['path']}: {error}") from None
    return replace(repo, default_branch=options["branch"] or repo.default_branch), path


def _normalized_name(name: str) -> str:
    from draftsman.repos.repo_url import parse

    if "/" in name:
        raise UsageError(f"--name {name}: must not contain a slash")
    return parse(f"https://here/{name}").name


async def _existing_repo(rt: Runtime, repo: Repo, path: str, *, replacing: bool) -> Repo | None:
    """Return the repository if it was added before; raises Conflict if it has the profile."""
    from draftsman.repos.repo_catalog import RepoLocation
    from draftsman.repos.repo_url import parse

    catalog = await rt.repos.catalog()
    existing = catalog.of(parse(repo.remote_url))
    existing = existing or next((known for known in catalog.repos if known.key == repo.key), None)
    if existing is None:
        if replacing:
            raise UsageError(
                f"unknown repository {repo.full_name}; --replace requires an existing repository"
            )
        return None
    if await rt.repos.profile(RepoLocation(existing, path)) is not None and not replacing:
        name = RepoLocation(existing, path).name
        raise Conflict(
            f"{name} already exists ({existing.remote_url}); see draftsman repos show {name},"
            " or use --replace to change its profile"
        )
    return existing


async def _validated(
    app: App,
    rt: Runtime,
    repo: Repo,
    path: str,
    profile_from_file: RepoProfile | None,
    options: dict[str, Any],
) -> tuple[RepoProfile, str | None, list[CommandResult]]:
    """Return the profile to save, the commit it was checked on, and the results."""
    from draftsman.agent_runs.validation.profile_check import inspect_repository, select_passing

    async with inspect_repository(rt.settings, repo.remote_url, repo.default_branch) as inspection:
        detected = inspection.detect_profile(path)
        profile = profile_from_file or detected
        if options["no_check"]:
            return profile, None, []
        _confirm_commands(app, repo, profile, options["yes"])
        results = await _run_checks(app, inspection, profile)
    if profile_from_file is None:
        profile, results = select_passing(profile, results)
        return profile, inspection.commit, results
    if failing := [result.name for result in results if result.required and not result.passed]:
        print_checks(app, results)
        raise Refused(
            f"not saved: {', '.join(failing)} failed on the unchanged repository; fix it, set"
            " required = false, or use --no-check"
        )
    return profile, inspection.commit, results


def _confirm_commands(app: App, repo: Repo, profile: RepoProfile, yes: bool) -> None:
    """Ask before running commands of a remote repository; raises Refused, UsageError."""
    commands = [check.command for check in profile.setup_commands]
    commands += [check.command for check in profile.validation_commands]
    if yes or repo.remote_url.startswith("/") or not commands:
        return
    names = ", ".join(" ".join(command) for command in commands)
    if not app.out.interactive:
        raise UsageError(f"not a terminal; to run {names}, use --yes; to skip them, --no-check")
    prompts.confirm(f"Run these commands in a clone on this machine: {names}?")


async def _run_checks(
    app: App, inspection: RepoInspection, profile: RepoProfile
) -> list[CommandResult]:
    if profile.validation_commands and app.out.on_screen:
        names = ", ".join(check.name for check in profile.validation_commands)
        app.out.info(f"running {names} in a clone at {inspection.commit[:12]}")
    return await inspection.check(profile)


def _profile_of(fields: dict[str, Any], path: str) -> RepoProfile:
    """Read the profile of a folder from a profile file or the output of repos show --json."""
    from draftsman.repos.repo_profile import RepoProfile, profile

    saved = fields.get("profiles")
    if isinstance(saved, list):
        matching = [
            item for item in saved if isinstance(item, dict) and item.get("path", "") == path
        ]
        if not matching:
            raise UsageError(f"the file has no profile for the folder {path!r}")
        fields = {key: matching[0][key] for key in RepoProfile.model_fields if key in matching[0]}
    return profile({**fields, "path": path})


def _print_added(
    app: App, repo: Repo, profile: RepoProfile, results: Sequence[CommandResult]
) -> None:
    from draftsman.repos.repo_catalog import RepoLocation

    location = RepoLocation(repo, profile.path)
    if app.json:
        checks = [result.as_json() for result in results]
        fields = profile.model_dump(mode="json")
        document = {"name": location.name, **as_data(repo), "profile": fields, "checks": checks}
        app.out.document(document)
        return
    print_checks(app, results)
    kind = "" if profile.profile_type == "unknown" else f" ({profile.profile_type})"
    app.out.print(line("added ", styled(location.name, "bold"), f"{kind} from {repo.remote_url}"))
    if text := without_validators(app, location, profile):
        app.out.info(text)
    if app.out.on_screen:
        app.out.info(f"to use it: draftsman submit --repo {_quoted(location)} 'Tidy up'")


def _quoted(location: RepoLocation) -> str:
    return location.name if not location.path else f"'{location.name}'"
