"""`repos`: repositories that are known by name, their labels and their profiles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from draftsman.errors import Refused, UsageError
from draftsman_tui.cli import prompts
from draftsman_tui.cli.app import App, Group, command, example_lines
from draftsman_tui.cli.repo.repo_add import add
from draftsman_tui.cli.repo.validation_report import print_checks, without_validators
from draftsman_tui.common import params, times
from draftsman_tui.common.output import as_data, line, styled

if TYPE_CHECKING:
    from draftsman.domain.repos.repo_catalog import Catalog, Repo
    from draftsman.services.repos import SavedProfile


@click.group(
    "repos",
    cls=Group,
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
    """Make repositories known, and say how they are validated.

    A name is pay, acme/pay, github.com/acme/pay, or acme/mono//services/api for a folder.
    """


@command("list", examples=("draftsman repos list",))
async def list_repos(app: App) -> None:
    """List the repositories that are known."""
    async with app.runtime(read_only=True) as rt:
        catalog = await rt.repos.catalog()
    if app.json:
        app.out.document([_row(repo, catalog) for repo in catalog.repos])
        return
    if not catalog.repos:
        app.out.info("no repository is known; make one so: draftsman repos add PATH|URL")
        return
    rows = []
    for repo in catalog.repos:
        found = _row(repo, catalog)
        labels = ", ".join(str(one["label"] or one["label_id"]) for one in found["mappings"])
        name = line(styled(repo.full_name, "bold"), " (default)" if repo.is_default else "")
        rows.append((name, repo.remote_url, ", ".join(p or "." for p in found["profiles"]), labels))
    app.out.table(("NAME", "WHERE", "PROFILES", "LABELS"), rows, flexible=1)


@command("show", examples=("draftsman repos show pay", "draftsman repos show pay --json"))
@click.argument("name", type=params.TEXT)
async def show(app: App, name: str) -> None:
    """Show a repository, its labels and its profiles."""
    from draftsman.domain.repos.repo_catalog import RepoLocation

    async with app.runtime(read_only=True) as rt:
        place = await rt.repos.place(name)
        catalog = await rt.repos.catalog()
        saved = await rt.repos.profiles(place.repo)
    if app.json:
        app.out.document(_row(place.repo, catalog) | {"profiles": [_saved(one) for one in saved]})
        return
    repo = place.repo
    app.out.print(line(styled(repo.full_name, "bold"), f"  {repo.remote_url}"))
    if repo.default_branch:
        app.out.print(f"jobs start from {repo.default_branch}")
    if repo.is_default:
        app.out.print("requests that say nothing mean this one")
    for one in _row(repo, catalog)["mappings"]:
        where = f", its folder {one['path']}" if one["path"] else ""
        app.out.print(f"label {one['label'] or one['label_id']} stands for it{where}")
    for profile in saved:
        _print_profile(app, profile)
        at = RepoLocation(repo, profile.profile.path)
        if text := without_validators(app, at, profile.profile):
            app.out.print(f"  {text}")


@command("check", examples=("draftsman repos check pay",))
@click.argument("name", type=params.TEXT)
async def check(app: App, name: str) -> None:
    """Run the validation commands of a profile again.

    Exits with 1 where one fails that is required.
    """
    from draftsman.handlers.run_agent.profile_check import inspect_repository

    async with app.runtime() as rt:
        place = await rt.repos.place(name)
        saved = await rt.repos.profile(place)
        if saved is None:
            raise UsageError(f"{place.name} has no profile; add one: draftsman repos add")
        async with inspect_repository(
            rt.settings, place.repo.remote_url, place.repo.default_branch
        ) as found:
            ran = await found.check(saved.profile)
        checks, actor = [one.as_json() for one in ran], await rt.actor()
        await rt.repos.checked(place.repo, place.path, found.commit, checks, actor)
    if app.json:
        app.out.document({"name": place.name, "commit": found.commit, "checks": checks})
    else:
        print_checks(app, ran)
        if text := without_validators(app, place, saved.profile):
            app.out.info(f"nothing was run: {place.name} has {text}")
    if failing := [one.name for one in ran if one.required and not one.passed]:
        raise Refused(f"{place.name}: {', '.join(failing)} failed")


@command(
    "map",
    examples=(
        "draftsman repos map acme/pay --label payments",
        "draftsman repos map acme/mono//services/api --label-id 5f0c…",
        "draftsman repos map acme/pay --default",
    ),
)
@click.argument("name", type=params.TEXT)
@click.option("--label", type=params.TEXT, help="A label's name, on any board.")
@click.option("--label-id", type=params.TEXT, help="A label's id: it stands for one repository.")
@click.option("--default", is_flag=True, help="Requests that say nothing mean it.")
async def map_label(
    app: App, name: str, label: str | None, label_id: str | None, default: bool
) -> None:
    """Let a label stand for a repository, or make it the default."""
    if not (label or label_id or default):
        raise UsageError("say what stands for it: --label NAME, --label-id ID or --default")
    async with app.runtime() as rt:
        place, actor = await rt.repos.place(name), await rt.actor()
        if label or label_id:
            await rt.repos.map(place, actor, label=label, label_id=label_id)
        if default:
            await rt.repos.set_default(place.repo, actor)
    if app.json:
        app.out.document({"name": place.name, "label": label, "label_id": label_id})
        return
    if label or label_id:
        app.out.print(f"label {label or label_id} stands for {place.name}")
    if default:
        app.out.print(f"requests that say nothing mean {place.repo.full_name}")


@command("unmap", examples=("draftsman repos unmap payments", "draftsman repos unmap --default"))
@click.argument("label", type=params.TEXT, required=False)
@click.option("--repo", type=params.TEXT, help="Of a label that stands for several: this one.")
@click.option("--default", is_flag=True, help="Let no repository be the default.")
async def unmap(app: App, label: str | None, repo: str | None, default: bool) -> None:
    """Let a label, by name or id, stand for nothing."""
    if (label is None) != default:
        raise UsageError("name a label, or give --default")
    async with app.runtime() as rt:
        actor = await rt.actor()
        if label is None:
            await rt.repos.set_default(None, actor)
            gone = 1
        else:
            place = await rt.repos.place(repo) if repo else None
            gone = await rt.repos.unmap(label, actor, place.repo if place else None)
    if app.json:
        app.out.document({"label": label, "removed": gone})
    else:
        app.out.print(f"label {label} stands for nothing" if label else "there is no default")


@command("remove", examples=("draftsman repos remove pay",))
@click.argument("name", type=params.TEXT)
@click.option("--yes", is_flag=True, help="Do not ask.")
async def remove(app: App, name: str, yes: bool) -> None:
    """Forget a repository, its labels and its profiles; its jobs stay, and so does the work."""
    async with app.runtime() as rt:
        place = await rt.repos.place(name)
        if place.path:
            raise UsageError(f"name the repository, not a folder of it: {place.repo.full_name}")
        if not yes:
            if not app.out.interactive:
                raise UsageError(f"nobody is here to be asked; remove {place.name} with --yes")
            prompts.confirm(f"forget {place.name}, its labels and its profiles?")
        await rt.repos.remove(place.repo, await rt.actor())
    if app.json:
        app.out.document({"name": place.name, "removed": True})
    else:
        app.out.print(f"{place.name} is not known any more")


for _each in (list_repos, add, show, check, map_label, unmap, remove):
    repos.add_command(_each)


def _row(repo: Repo, catalog: Catalog) -> dict[str, Any]:
    mappings = [
        {"label_id": one.trello_label_id, "label": one.trello_label_name, "path": one.path}
        for one in catalog.mappings
        if one.repo == repo.id
    ]
    paths = [path for id, path in catalog.parts if id == repo.id]
    found: dict[str, Any] = as_data(repo)
    return found | {"mappings": mappings, "profiles": paths}


def _saved(one: SavedProfile) -> dict[str, Any]:
    about: dict[str, Any] = as_data(one)
    about.pop("profile")
    return one.profile.model_dump(mode="json") | about


def _print_profile(app: App, saved: SavedProfile) -> None:
    profile = saved.profile
    when = f"checked {times.ago(saved.checked_at)}" if saved.checked_at else "never checked"
    name = profile.path or "top"
    app.out.print("")
    app.out.print(line(styled(name, "bold"), f"  {profile.profile_type}, {when}"))
    if profile.agent:
        app.out.print(f"agent {profile.agent}")
    said = {one["name"]: one for one in saved.checks}
    for kind in ("setup_commands", "validation_commands", "fix_commands"):
        for one in getattr(profile, kind):
            last = said.get(one.name) if kind == "validation_commands" else None
            tail = "" if last is None else "  passed" if last["passed"] else "  failed"
            need = "" if getattr(one, "required", True) else " (optional)"
            app.out.print(
                f"  {kind.partition('_')[0]} {one.name}{need}: {' '.join(one.command)}{tail}"
            )
