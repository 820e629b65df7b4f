"""The forge of a repository, by the configuration."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from urllib.parse import quote

from draftsman.errors import ConfigError, NotOnThisWorker, UsageError
from draftsman.forges.forge import Discussion, Forge
from draftsman.forges.issue_target import IssueTarget
from draftsman.forges.project import Project, find_project
from draftsman.forges.pull_request import GitLogin
from draftsman.settings import Settings
from draftsman.settings.forges import ForgeSettings


def forge_settings(settings: Settings, source: str) -> tuple[str, ForgeSettings, Project] | None:
    """Return name and settings of the forge with the host of a URL, and the repository there."""
    for name, forge in settings.forges.items():
        if (project := find_project(forge.url, source)) is not None:
            return name, forge, project
    return None


def forge_of(settings: Settings, source: str) -> Forge | None:
    """Return the forge of a repository; None for a plain git remote and for a folder.

    Raises Failure if the package of its kind cannot be loaded.
    """
    if (at_forge := forge_settings(settings, source)) is None:
        return None
    name, _, project = at_forge
    return _connect(settings, name, project)


def forge_at(settings: Settings, name: str, project: str) -> Forge:
    """Return a repository, `acme/pay`, on the forge with this name."""
    owner, _, repository = project.rpartition("/")
    at = Project(owner, repository, settings.forges[name].url, takes_token=True)
    return _connect(settings, name, at)


def discussion_of(settings: Settings, target: IssueTarget) -> Discussion:
    """Return the comments of an issue or pull request; raises UsageError without its forge."""
    table = settings.forges.get(target.forge)
    if table is None:
        names = ", ".join(sorted(settings.forges)) or "none"
        raise UsageError(f"no forge {target.forge!r} in [forges] of this process; known: {names}")
    forge = forge_at(settings, target.forge, target.path)
    return forge.discussion(target.number, is_pull=target.is_pull)


def _connect(settings: Settings, name: str, project: Project) -> Forge:
    """Return a repository by the API of its kind; raises Failure if that cannot be loaded."""
    table = settings.forges[name]
    try:
        api = table.load_part(table.plugin.api)
    except ConfigError as error:
        raise NotOnThisWorker(f"{name}: {error}", origin="forge", code="no_api") from error
    forge: Forge = api(name, table, settings.http, project)
    return forge


def git_login_of(settings: Settings, source: str) -> Callable[[], Awaitable[GitLogin]] | None:
    """Return the source of git's token for a URL; None if it takes none, as over SSH."""
    forge = forge_of(settings, source)
    return forge.git_login if forge is not None and forge.project.takes_token else None


def git_location_of(settings: Settings, source: str) -> Callable[[], Awaitable[str | None]] | None:
    """Return what tells the URL of a repository after a rename or transfer, else None.

    None for a URL that takes no token.
    """
    forge = forge_of(settings, source)
    if forge is None or not forge.project.takes_token:
        return None
    project = forge.project

    async def locate() -> str | None:
        location = await forge.location()
        is_moved = location.casefold() != project.path.casefold()
        return f"{project.forge_url}/{quote(location)}.git" if is_moved else None

    return locate
