"""The `repos` command group: repositories, their labels and profiles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from draftsman.errors import Refused, UsageError
from draftsman_tui.cli import prompts
from draftsman_tui.cli.app import App, ListGroup, command, example_lines
from draftsman_tui.cli.repos.forge_access import check_access
from draftsman_tui.cli.repos.repo_add import add
from draftsman_tui.cli.repos.validation_report import print_checks, without_validators
from draftsman_tui.terminal import params, times
from draftsman_tui.terminal.output import as_data, line, styled

if TYPE_CHECKING:
    from draftsman.jobs.read_models import SavedProfile
    from draftsman.repos.repo_catalog import Catalog, Repo


@click.group(
    "repos",
    cls=ListGroup,
    epilog=example_lines(
        (
            "draftsman repos add .",
            "draftsman repos add https://github.com/acme/pay",
            "draftsman repos map acme/pay --label payments",
            "draftsman submit --repo pay 'Tidy up'",
        )
    ),
)
def repos() -> None:
    """Manage repositories and their profiles.

    NAME is pay, acme/pay, github.com/acme/pay, or acme/mono//services/api for a folder.
    """


@command("list", examples=("draftsman repos list",))
async def list_repos(app: App) -> None:
    """List the repositories."""
    async with app.runtime(read_only=True) as rt:
        catalog = await rt.repos.catalog()
    if app.json:
        app.out.document([_row(repo, catalog) for repo in catalog.repos])
        return
    if not catalog.repos:
        app.out.info("no repositories; to add a repository: draftsman repos add PATH|URL")
        return
    rows = []
    for repo in catalog.repos:
        row = _row(repo, catalog)
        labels = ", ".join(str(item["label"] or item["label_id"]) for item in row["mappings"])
        name = line(styled(repo.full_name, "bold"), " (default)" if repo.is_default else "")
        rows.append((name, repo.remote_url, ", ".join(p or "." for p in row["profiles"]), labels))
    app.out.table(("NAME", "URL", "PROFILES", "LABELS"), rows, flexible=1)


@command("show", examples=("draftsman repos show pay", "draftsman repos show pay --json"))
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
        app.out.document(_row(location.repo, catalog) | {"profiles": profiles})
        return
    repo = location.repo
    app.out.print(line(styled(repo.full_name, "bold"), f"  {repo.remote_url}"))
    if repo.default_branch:
        app.out.print(f"default branch {repo.default_branch}")
    if repo.is_default:
        app.out.print("default repository")
    for mapping in _row(repo, catalog)["mappings"]:
        folder = f", folder {mapping['path']}" if mapping["path"] else ""
        app.out.print(f"label {mapping['label'] or mapping['label_id']}{folder}")
    for profile in saved:
        _print_profile(app, profile)
        part = RepoLocation(repo, profile.profile.path)
        if text := without_validators(app, part, profile.profile):
            app.out.print(f"  {text}")


@command("check", examples=("draftsman repos check pay",))
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
            rt.settings, location.repo.remote_url, location.repo.default_branch
        ) as inspection:
            results = await inspection.check(saved.profile)
        access = await check_access(rt.settings, location.repo.remote_url)
        checks, actor = [result.as_json() for result in results], await rt.actor()
        await rt.repos.checked(location.repo, location.path, inspection.commit, checks, actor)
    if app.json:
        document = {"name": location.name, "commit": inspection.commit, "checks": checks}
        app.out.document(document | ({} if access is None else {"forge": access}))
    else:
        print_checks(app, results)
        if text := without_validators(app, location, saved.profile):
            app.out.info(f"nothing to run: {location.name} has {text}")
    if access is not None and access.status == "ok" and not app.json:
        app.out.print(f"forge {access.forge}: {access.text}")
    if failing := [result.name for result in results if result.required and not result.passed]:
        raise Refused(f"{location.name}: {', '.join(failing)} failed")
    if access is not None and access.status != "ok":
        raise Refused(f"{access.text}; {access.hint}")


@command(
    "map",
    examples=(
        "draftsman repos map acme/pay --label payments",
        "draftsman repos map acme/mono//services/api --label-id 5f0c…",
        "draftsman repos map acme/pay --default",
    ),
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
        location, actor = await rt.repos.place(name), await rt.actor()
        if label or label_id:
            await rt.repos.map(location, actor, label=label, label_id=label_id)
        if default:
            await rt.repos.set_default(location.repo, actor)
    if app.json:
        app.out.document({"name": location.name, "label": label, "label_id": label_id})
        return
    if label or label_id:
        app.out.print(f"mapped label {label or label_id} to {location.name}")
    if default:
        app.out.print(f"default repository: {location.repo.full_name}")


@command("unmap", examples=("draftsman repos unmap payments", "draftsman repos unmap --default"))
@click.argument("label", type=params.TEXT, required=False)
@click.option("--repo", type=params.TEXT, help="Unmap the label from this repository only.")
@click.option("--default", is_flag=True, help="Clear the default repository.")
async def unmap(app: App, label: str | None, repo: str | None, default: bool) -> None:
    """Remove the mapping of a label, given by name or id."""
    if (label is None) != default:
        raise UsageError("specify either LABEL or --default")
    async with app.runtime() as rt:
        actor = await rt.actor()
        if label is None:
            await rt.repos.set_default(None, actor)
            removed = 1
        else:
            location = await rt.repos.place(repo) if repo else None
            removed = await rt.repos.unmap(label, actor, location.repo if location else None)
    if app.json:
        app.out.document({"label": label, "removed": removed})
    else:
        app.out.print(f"unmapped label {label}" if label else "cleared the default repository")


@command("remove", examples=("draftsman repos remove pay",))
@click.argument("name", type=params.TEXT)
@params.yes_option
async def remove(app: App, name: str, yes: bool) -> None:
    """Remove a repository with its labels and profiles; its jobs and branches are kept."""
    async with app.runtime() as rt:
        location = await rt.repos.place(name)
        if location.path:
            raise UsageError(
                f"{name}: remove the repository, not a folder: {location.repo.full_name}"
            )
        if not yes:
            if not app.out.interactive:
                raise UsageError(f"not a terminal; to remove {location.name}, use --yes")
            prompts.confirm(f"Remove {location.name} with its labels and profiles?")
        await rt.repos.remove(location.repo, await rt.actor())
    if app.json:
        app.out.document({"name": location.name, "removed": True})
    else:
        app.out.print(f"{location.name} removed")


for _each in (list_repos, add, show, check, map_label, unmap, remove):
    repos.add_command(_each)


def _row(repo: Repo, catalog: Catalog) -> dict[str, Any]:
    mappings = [
        {"label_id": item.trello_label_id, "label": item.trello_label_name, "path": item.path}
        for item in catalog.mappings
        if item.repo == repo.id
    ]
    paths = [path for id, path in catalog.profile_paths if id == repo.id]
    data: dict[str, Any] = as_data(repo)
    return data | {"mappings": mappings, "profiles": paths}


def _profile_data(saved: SavedProfile) -> dict[str, Any]:
    data: dict[str, Any] = as_data(saved)
    data.pop("profile")
    return saved.profile.model_dump(mode="json") | data


def _print_profile(app: App, saved: SavedProfile) -> None:
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
            command = " ".join(item.command)
            app.out.print(f"  {kind.partition('_')[0]} {item.name}{optional}: {command}{outcome}")
