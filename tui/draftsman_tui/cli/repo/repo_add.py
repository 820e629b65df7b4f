"""`repos add`: a profile is proposed from the tree, and run before it is saved."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from draftsman.errors import Conflict, Refused, UsageError
from draftsman_tui.cli import prompts
from draftsman_tui.cli.app import App, command
from draftsman_tui.cli.repo.validation_report import print_checks, without_validators
from draftsman_tui.common import params
from draftsman_tui.common.output import as_data, line, styled

if TYPE_CHECKING:
    from collections.abc import Sequence

    from draftsman.domain.repos.repo_catalog import Repo, RepoLocation
    from draftsman.domain.repos.repo_profile import RepoProfile
    from draftsman.handlers.run_agent.commands import CommandResult
    from draftsman.handlers.run_agent.profile_check import RepoInspection
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
@click.option("--path", type=params.TEXT, help="The folder that the profile is for, of many.")
@click.option("--name", type=params.TEXT, help="What a folder is called whose name is taken.")
@click.option("--branch", type=params.TEXT, help="What jobs start from that name no other.")
@click.option(
    "--profile",
    "file",
    metavar="FILE",
    type=click.Path(path_type=Path, allow_dash=True),
    help="The profile as JSON, as repos show --json prints it, instead of a proposal.",
)
@click.option("--replace", is_flag=True, help="Take the place of the profile that is there.")
@click.option("--no-check", is_flag=True, help="Save it without running anything.")
@click.option("--yes", is_flag=True, help="Run the commands of a URL's tree without asking.")
async def add(app: App, place: str, file: Path | None, **options: Any) -> None:
    """Make a repository known.

    A profile is proposed from the tree, and its validation commands are run in a clone before it
    is saved: what is not installed is left out, and what fails on the untouched tree is no gate.
    """
    fields = params.json_object(params.read_text(file), str(file)) if file is not None else None
    async with app.runtime() as rt:
        repo, path = await _meant(rt, place, options)
        given = None if fields is None else _profile_of(fields, path)
        there = await _taken(rt, repo, path, replacing=options["replace"])
        found = await _inspected(app, rt, repo, path, given, options)
        profile, commit, ran = found
        actor, checks = await rt.actor(), [one.as_json() for one in ran if not one.missing]
        if there is not None and options["replace"]:
            await rt.repos.save_profile(there, profile, actor, commit=commit, checks=checks)
            repo = there
        else:
            repo = await rt.repos.add(repo, profile, actor, commit=commit, checks=checks)
    _told(app, repo, profile, ran)


async def _meant(rt: Runtime, place: str, options: dict[str, Any]) -> tuple[Repo, str]:
    """Return the repository that is to be known, and the folder that the profile is for."""
    from draftsman.domain.repos import repo_url
    from draftsman.domain.repos.repo_catalog import Repo
    from draftsman.domain.repos.repo_profile import folder
    from draftsman.handlers.run_agent.profile_check import find_local_repository

    named, inner = options["name"], ""
    if Path(place).expanduser().is_dir():
        repo, inner = await find_local_repository(Path(place).expanduser())
        if named:
            repo = replace(repo, host="", owner="", name=_a_name(named))
    elif repo_url.is_repo_url(place) and not place.startswith(("/", "~", ".", "file:")):
        repo = Repo.at(repo_url.parse(place))
        if named:
            raise UsageError("--name is for folders: a URL has its name")
    elif place.startswith(("/", "~", ".", "file:")):
        raise UsageError(f"{place}: no such folder here; give a folder, or a URL")
    else:
        found = await rt.repos.place(place)
        repo, inner = found.repo, found.path
    try:
        path = folder(options["path"]) if options["path"] else inner
    except ValueError as error:
        raise UsageError(f"--path {options['path']}: {error}") from None
    return replace(repo, default_branch=options["branch"] or repo.default_branch), path


def _a_name(name: str) -> str:
    from draftsman.domain.repos.repo_url import parse

    if "/" in name:
        raise UsageError(f"--name {name}: a name has no slash")
    return parse(f"https://here/{name}").name


async def _taken(rt: Runtime, repo: Repo, path: str, *, replacing: bool) -> Repo | None:
    """Return the known repository; raises Conflict where the profile would be another's."""
    from draftsman.domain.repos.repo_catalog import RepoLocation
    from draftsman.domain.repos.repo_url import parse

    catalog = await rt.repos.catalog()
    there = catalog.of(parse(repo.remote_url))
    there = there or next((one for one in catalog.repos if one.key == repo.key), None)
    if there is None:
        if replacing:
            raise UsageError(f"{repo.full_name} is not known: there is nothing to replace")
        return None
    if await rt.repos.profile(RepoLocation(there, path)) is not None and not replacing:
        name = RepoLocation(there, path).name
        raise Conflict(
            f"{name} is known already, at {there.remote_url}; see: draftsman repos show {name},"
            " and for another profile --replace"
        )
    return there


async def _inspected(
    app: App,
    rt: Runtime,
    repo: Repo,
    path: str,
    given: RepoProfile | None,
    options: dict[str, Any],
) -> tuple[RepoProfile, str | None, list[CommandResult]]:
    """Return the profile that is worth keeping, and what it said about which commit."""
    from draftsman.handlers.run_agent.profile_check import inspect_repository, select_passing

    async with inspect_repository(rt.settings, repo.remote_url, repo.default_branch) as found:
        proposed = found.detect_profile(path)
        profile = given or proposed
        if options["no_check"]:
            return profile, None, []
        _may_run(app, repo, profile, options["yes"])
        ran = await _checked(app, found, profile)
    if given is None:
        profile, ran = select_passing(profile, ran)
        return profile, found.commit, ran
    if failing := [one.name for one in ran if one.required and not one.passed]:
        print_checks(app, ran)
        raise Refused(
            f"{', '.join(failing)} failed on the untouched tree, so nothing was saved: mend it, or"
            " say required = false, or --no-check"
        )
    return profile, found.commit, ran


def _may_run(app: App, repo: Repo, profile: RepoProfile, yes: bool) -> None:
    """Ask whether code of a URL may run here; a folder of one's own runs anyhow."""
    commands = [one.command for one in profile.setup_commands]
    commands += [one.command for one in profile.validation_commands]
    if yes or repo.remote_url.startswith("/") or not commands:
        return
    names = ", ".join(" ".join(one) for one in commands)
    if not app.out.interactive:
        raise UsageError(f"nobody is here to be asked; run {names} with --yes, or --no-check")
    prompts.confirm(f"run in a clone, on this machine: {names}?")


async def _checked(app: App, found: RepoInspection, profile: RepoProfile) -> list[CommandResult]:
    if profile.validation_commands and app.out.on_screen:
        names = ", ".join(one.name for one in profile.validation_commands)
        app.out.info(f"running {names} on {found.commit[:12]}, in a clone")
    return await found.check(profile)


def _profile_of(fields: dict[str, Any], path: str) -> RepoProfile:
    """Return the profile of a folder from a file: that alone, or what repos show prints."""
    from draftsman.domain.repos.repo_profile import RepoProfile, profile

    saved = fields.get("profiles")
    if isinstance(saved, list):
        found = [one for one in saved if isinstance(one, dict) and one.get("path", "") == path]
        if not found:
            raise UsageError(f"the file has no profile of the folder {path!r}; give that alone")
        fields = {key: found[0][key] for key in RepoProfile.model_fields if key in found[0]}
    return profile({**fields, "path": path})


def _told(app: App, repo: Repo, profile: RepoProfile, ran: Sequence[CommandResult]) -> None:
    from draftsman.domain.repos.repo_catalog import RepoLocation

    place = RepoLocation(repo, profile.path)
    if app.json:
        checks = [one.as_json() for one in ran]
        fields = profile.model_dump(mode="json")
        app.out.document({"name": place.name, **as_data(repo), "profile": fields, "checks": checks})
        return
    print_checks(app, ran)
    app.out.print(line(styled(place.name, "bold"), f" is known, as {profile.profile_type}"))
    if text := without_validators(app, place, profile):
        app.out.info(text)
    if app.out.on_screen:
        app.out.info(f"use it: draftsman submit --repo {_shown(place)} 'Tidy up'")


def _shown(place: RepoLocation) -> str:
    return place.name if not place.path else f"'{place.name}'"
