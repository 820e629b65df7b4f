"""The forge of a repository, by the configuration."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from draftsman.errors import UsageError
from draftsman.forges.api.gitea import Gitea
from draftsman.forges.api.github import GitHub
from draftsman.forges.api.gitlab import GitLab
from draftsman.forges.forge import Discussion, Forge
from draftsman.forges.issue_target import IssueTarget
from draftsman.forges.project import Project, find_project
from draftsman.forges.pull_request import GitLogin
from draftsman.settings import Settings
from draftsman.settings.forges import ForgeSettings
from draftsman.settings.http import HttpSettings

KINDS: Final[dict[str, Callable[[str, ForgeSettings, HttpSettings, Project], Forge]]] = {
    "github": GitHub,
    "gitlab": GitLab,
    "gitea": Gitea,
}


def forge_settings(settings: Settings, source: str) -> tuple[str, ForgeSettings, Project] | None:
    """Return name and settings of the forge with the host of a URL, and the repository there."""
    for name, forge in settings.forges.items():
        if (project := find_project(forge.url, source)) is not None:
            return name, forge, project
    return None


def forge_of(settings: Settings, source: str) -> Forge | None:
    """Return the forge of a repository; None for a plain git remote and for a folder."""
    if (at_forge := forge_settings(settings, source)) is None:
        return None
    name, forge, project = at_forge
    return KINDS[forge.kind](name, forge, settings.http, project)


def forge_at(settings: Settings, name: str, project: str) -> Forge:
    """Return a repository, `acme/pay`, on the forge with this name."""
    forge = settings.forges[name]
    owner, _, repository = project.rpartition("/")
    at = Project(owner, repository, forge.url, takes_token=True)
    return KINDS[forge.kind](name, forge, settings.http, at)


def discussion_of(settings: Settings, target: IssueTarget) -> Discussion:
    """Return the comments of an issue or pull request; raises UsageError without its forge."""
    table = settings.forges.get(target.forge)
    if table is None:
        names = ", ".join(sorted(settings.forges)) or "none"
        raise UsageError(f"no forge {target.forge!r} in [forges] of this process; known: {names}")
    forge = forge_at(settings, target.forge, target.path)
    return forge.discussion(target.number, is_pull=target.is_pull)


def git_login_of(settings: Settings, source: str) -> Callable[[], Awaitable[GitLogin]] | None:
    """Return the source of git's token for a URL; None if it takes none, as over SSH."""
    forge = forge_of(settings, source)
    return forge.git_login if forge is not None and forge.project.takes_token else None
