"""The `repos` command group: repositories, their labels and profiles."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from draftsman.actions import maintenance as actions
from draftsman.entities.repos import REPOS, repo_data, repo_row
from draftsman.errors import Conflict, Refused, UsageError
from draftsman.formats import times
from draftsman.formats.json_data import as_data
from draftsman.repos import repo_url
from draftsman_tui.cli.app import App, ListGroup, command_group
from draftsman_tui.cli.lists import list_rows
from draftsman_tui.cli.perform import act
from draftsman_tui.cli.repos.forge_access import check_access
from draftsman_tui.cli.repos.repo_checks import CheckedProfile, checked_profile, print_checks
from draftsman_tui.terminal import params
from draftsman_tui.terminal.output import line, styled

if TYPE_CHECKING:
    from draftsman.repos.repo_catalog import Repo, RepoLocation
    from draftsman.repos.repo_profile import RepoProfile, SavedProfile
    from draftsman.runtime import Runtime


def without_validators(app: App, location: RepoLocation, profile: RepoProfile) -> str | None:
    """Describe the fallback for a profile without validation commands; None if it has any."""
    if profile.validation_commands:
        return None
    repo = location.repo
    name, configured = app.settings.profile_of(repo.host, repo.full_name)
    key = f'[profiles."{name}"]' if name else "[profile]"
    commands = configured.validation_commands
    if not commands:
        return (
            f"no validation commands, and none in {key} of the configuration;"
            " see: draftsman help --page repos#profiles"
        )
    names = ", ".join(command.name for command in commands)
    return f"no validation commands; agents use those in {key} of the configuration: {names}"


@command_group(
    "repos",
    section="Setup",
    cls=ListGroup,
    examples=(
        "draftsman repos add .",
        "draftsman repos add https://github.com/acme/pay",
        "draftsman repos map acme/pay --label payments",
        "draftsman submit --repo pay 'Tidy up'",
    ),
)
def repos() -> None:
    """Manage repositories and their profiles.

    NAME is pay, acme/pay, github.com/acme/pay, or acme/mono//services/api for a folder.
    """


@repos.subcommand(
    "add",
    examples=(
        "draftsman repos add .",
        "draftsman repos add ./services/api",
        "draftsman repos add . --setup 'uv sync --frozen'",
        "draftsman repos add https://github.com/acme/pay --branch develop --yes",
        "draftsman repos add pay --profile pay.json --replace",
    ),
    does=(actions.add_repo,),
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
@click.option(
    "--setup",
    metavar="COMMAND",
    type=params.TEXT,
    help="Command that sets up tools in each clone, instead of a detected one; '' for none.",
)
@click.option("--replace", is_flag=True, help="Replace the existing profile.")
@click.option("--no-check", is_flag=True, help="Save without running the commands.")
@click.option("-y", "--yes", is_flag=True, help="Run all commands without asking.")
async def add(app: App, place: str, file: Path | None, **options: Any) -> None:
    """Add a repository.

    A profile is detected from the files of the repository. Its validation commands are run in a
    clone before it is saved: commands that are not installed are left out, and commands that fail
    on the unchanged repository become optional. How its tools are set up is detected from its lock
    files, such as uv.lock and package-lock.json.
    """
    if file is not None and options["setup"] is not None:
        raise UsageError("--setup cannot be combined with --profile, which has setup_commands")
    fields = params.json_object(params.read_text(file), str(file)) if file is not None else None
    async with app.runtime() as rt:
        repo, path = await _resolve(rt, place, options)
        profile_from_file = None if fields is None else _profile_of(fields, path)
        existing = await _existing_repo(rt, repo, path, replacing=options["replace"])
        checked = await checked_profile(app, rt, repo, path, profile_from_file, options)
        replaces = existing is not None and options["replace"]
        result = await act(
            app,
            rt,
            actions.add_repo,
            existing if existing is not None and replaces else repo,
            profile=checked.profile,
            commit=checked.commit,
            checks=[result.as_json() for result in checked.results if not result.missing],
            replaces=replaces,
            prints=False,
        )
    _print_added(app, result.value, checked)


async def _resolve(rt: Runtime, place: str, options: dict[str, Any]) -> tuple[Repo, str]:
    """Return the repository to add and the folder of its profile."""
    from draftsman.agent_runs.validation.profile_check import find_local_repository
    from draftsman.repos.repo_catalog import Repo
    from draftsman.repos.repo_profile import folder

    name = options["name"]
    inner = ""
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
        repo = location.repo
        inner = location.path
    try:
        path = folder(options["path"]) if options["path"] else inner
    except ValueError as error:
        raise UsageError(f"--path {options['path']}: {error}") from None
    return replace(repo, default_branch=options["branch"] or repo.default_branch), path


def _normalized_name(name: str) -> str:
    if "/" in name:
        raise UsageError(f"--name {name}: must not contain a slash")
    return repo_url.parse(f"https://here/{name}").name


async def _existing_repo(rt: Runtime, repo: Repo, path: str, *, replacing: bool) -> Repo | None:
    """Return the repository if it was added before; raises Conflict if it has the profile."""
    from draftsman.repos.repo_catalog import RepoLocation

    catalog = await rt.repos.catalog()
    existing = catalog.of(repo_url.parse(repo.remote_url))
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


def _print_added(app: App, repo: Repo, checked: CheckedProfile) -> None:
    from draftsman.repos.repo_catalog import RepoLocation

    profile = checked.profile
    location = RepoLocation(repo, profile.path)
    if app.json:
        document = {
            "name": location.name,
            **as_data(repo),
            "profile": profile.model_dump(mode="json"),
            "checks": [result.as_json() for result in checked.results],
            "setup": checked.setup_data(),
            "enforced": checked.enforced,
        }
        app.out.document(document)
        return
    print_checks(app, checked.results)
    kind = "" if profile.profile_type == "unknown" else f" ({profile.profile_type})"
    app.out.print(line("added ", styled(location.name, "bold"), f"{kind} from {repo.remote_url}"))
    for note in checked.notes(location.name):
        app.out.info(note)
    if text := without_validators(app, location, profile):
        app.out.info(text)
    if app.out.on_screen:
        app.out.info(f"to use it: draftsman submit --repo {_quoted(location)} 'Tidy up'")


def _quoted(location: RepoLocation) -> str:
    return location.name if not location.path else f"'{location.name}'"


repos.subcommand("list", examples=("draftsman repos list",), lists=REPOS)(list_rows(REPOS))


@repos.subcommand("show", examples=("draftsman repos show pay", "draftsman repos show pay --json"))
@click.argument("name", type=params.TEXT)
async def show(app: App, name: str) -> None:
    """Show a repository, its labels and its profiles."""
    from draftsman.repos.repo_catalog import RepoLocation

    async with app.runtime(read_only=True) as rt:
        location = await rt.repos.place(name)
        catalog = await rt.repos.catalog()
        saved = await rt.repos.profiles(location.repo)
    if app.json:
        profiles = [_profile_data(profile) for profile in saved]
        app.out.document(repo_data(repo_row(location.repo, catalog)) | {"profiles": profiles})
        return
    repo = location.repo
    app.out.print(line(styled(repo.full_name, "bold"), f"  {repo.remote_url}"))
    if repo.default_branch:
        app.out.print(f"default branch {repo.default_branch}")
    if repo.is_default:
        app.out.print("default repository")
    for mapping in repo_row(repo, catalog).mappings:
        folder = f", folder {mapping.path}" if mapping.path else ""
        app.out.print(f"label {mapping.label_name or mapping.label_id}{folder}")
    for profile in saved:
        _print_profile(app, profile)
        part = RepoLocation(repo, profile.profile.path)
        if text := without_validators(app, part, profile.profile):
            app.out.print(f"  {text}")


@repos.subcommand("check", examples=("draftsman repos check pay",), does=(actions.record_check,))
@click.argument("name", type=params.TEXT)
async def check(app: App, name: str) -> None:
    """Run the validation commands of a profile, and check the token of its forge.

    Exits with 1 if a required command fails, or the token lacks rights.
    """
    from draftsman.agent_runs.validation.profile_check import inspect_repository

    async with app.runtime() as rt:
        location = await rt.repos.place(name)
        saved = await rt.repos.profile(location)
        if saved is None:
            raise UsageError(f"{location.name} has no profile; to add it: draftsman repos add")
        async with inspect_repository(
            rt.settings, location.repo.remote_url, location.repo.default_branch, saved.profile
        ) as inspection:
            for text in inspection.missing_parts:
                app.out.info(f"jobs work without {text}")
            results = await inspection.check(saved.profile)
        access = await check_access(rt.settings, location.repo.remote_url)
        checks = [result.as_json() for result in results]
        await act(
            app,
            rt,
            actions.record_check,
            location,
            commit=inspection.commit,
            checks=checks,
            prints=False,
        )
    if app.json:
        document = {"name": location.name, "commit": inspection.commit, "checks": checks}
        app.out.document(document | ({} if access is None else {"forge": access}))
    else:
        print_checks(app, results)
        if (missing := without_validators(app, location, saved.profile)) is not None:
            app.out.info(f"nothing to run: {location.name} has {missing}")
    if access is not None and access.status == "ok" and not app.json:
        app.out.print(f"forge {access.forge}: {access.text}")
    if failing := [result.name for result in results if result.required and not result.passed]:
        raise Refused(f"{location.name}: {', '.join(failing)} failed")
    if access is not None and access.status != "ok":
        raise Refused(f"{access.text}; {access.hint}")


@repos.subcommand(
    "map",
    examples=(
        "draftsman repos map acme/pay --label payments",
        "draftsman repos map acme/mono//services/api --label-id 5f0c…",
        "draftsman repos map acme/pay --default",
    ),
    does=(actions.map_label, actions.make_default),
)
@click.argument("name", type=params.TEXT)
@click.option("--label", type=params.TEXT, help="Label with this name, on every board.")
@click.option("--label-id", type=params.TEXT, help="Label with this id.")
@click.option("--default", is_flag=True, help="Use for requests that name no repository.")
async def map_label(
    app: App, name: str, label: str | None, label_id: str | None, default: bool
) -> None:
    """Map a label to a repository, or set the default repository."""
    if not (label or label_id or default):
        raise UsageError("specify --label NAME, --label-id ID or --default")
    async with app.runtime() as rt:
        location = await rt.repos.place(name)
        if label or label_id:
            await act(
                app,
                rt,
                actions.map_label,
                location.repo,
                label=label,
                label_id=label_id,
                folder=location.path,
            )
        if default:
            is_alone = not (label or label_id)
            await act(app, rt, actions.make_default, location.repo, prints=is_alone or not app.json)


@repos.subcommand(
    "unmap",
    examples=("draftsman repos unmap payments", "draftsman repos unmap --default"),
    does=(actions.unmap_label, actions.make_default),
)
@click.argument("label", type=params.TEXT, required=False)
@click.option("--repo", type=params.TEXT, help="Unmap the label from this repository only.")
@click.option("--default", is_flag=True, help="Clear the default repository.")
async def unmap(app: App, label: str | None, repo: str | None, default: bool) -> None:
    """Remove the mapping of a label, given by name or id."""
    if (label is None) != default:
        raise UsageError("specify either LABEL or --default")
    async with app.runtime() as rt:
        if label is None:
            await act(app, rt, actions.make_default, None)
            return
        known = (await rt.repos.place(repo)).repo if repo else None
        await act(app, rt, actions.unmap_label, known, label=label)


@repos.subcommand("remove", examples=("draftsman repos remove pay",), does=(actions.remove_repo,))
@click.argument("name", type=params.TEXT)
async def remove(app: App, name: str, yes: bool) -> None:
    """Remove a repository with its labels and profiles; its jobs and branches are kept."""
    async with app.runtime() as rt:
        location = await rt.repos.place(name)
        if location.path:
            raise UsageError(
                f"{name}: remove the repository, not a folder: {location.repo.full_name}"
            )
        await act(app, rt, actions.remove_repo, location.repo, yes=yes)


def _profile_data(saved: SavedProfile) -> dict[str, Any]:
    data: dict[str, Any] = as_data(saved)
    data.pop("profile")
    return saved.profile.model_dump(mode="json") | data


def _print_profile(app: App, saved: SavedProfile) -> None:
    from draftsman.settings.profiles import without_report

    profile = saved.profile
    checked = f"checked {times.ago(saved.checked_at)}" if saved.checked_at else "never checked"
    name = profile.path or "(root)"
    app.out.print("")
    app.out.print(line(styled(name, "bold"), f"  {profile.profile_type}, {checked}"))
    if profile.agent:
        app.out.print(f"agent {profile.agent}")
    results = {result["name"]: result for result in saved.checks}
    for kind in ("setup_commands", "validation_commands", "fix_commands"):
        for item in getattr(profile, kind):
            result = results.get(item.name) if kind == "validation_commands" else None
            outcome = "" if result is None else "  passed" if result["passed"] else "  failed"
            optional = "" if getattr(item, "required", True) else " (optional)"
            command = shlex.join(without_report(item.command))
            app.out.print(f"  {kind.partition('_')[0]} {item.name}{optional}: {command}{outcome}")
