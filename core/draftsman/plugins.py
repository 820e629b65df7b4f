"""Plugins: what installed packages declare as entry points.

A group is a kind of plugin, such as `draftsman.channels`. Entry points are found without an import
of their packages, and loaded one by one, so that a broken package harms no other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from draftsman.errors import ConfigError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

OWN: Final = "draftsman"
"""The distribution whose names no other package can take."""
CHANNELS: Final = "draftsman.channels"
"""Group of `ChannelPlugin` objects."""
FORGES: Final = "draftsman.forges"
"""Group of `ForgePlugin` objects, the kinds of forges."""
AGENTS: Final = "draftsman.agents"
"""Group of `AgentPlugin` objects, the coding agents and their kinds."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Plugin:
    """An entry point of a package that is installed here."""

    name: str
    target: str
    """`package.module:attribute`."""
    package: str
    version: str
    group: str

    def __str__(self) -> str:
        return f"{_kind(self.group)} {self.name!r} of {self.package} {self.version}"


def installed(group: str) -> tuple[Plugin, ...]:
    """Return the plugins of a group by name, including those that cannot be used."""
    return tuple(plugin for name in _installed(group) for plugin in _installed(group)[name])


def names(group: str) -> list[str]:
    """Return the names of a group's plugins, without loading them."""
    return list(_installed(group))


def find(group: str, name: str) -> Plugin:
    """Return the plugin of a name; raises ConfigError if there is none, or more than one."""
    candidates = _installed(group).get(name, ())
    if not candidates:
        known = ", ".join(names(group)) or "none"
        raise ConfigError(f"no installed package has the {_kind(group)} {name!r}; known: {known}")
    own = [plugin for plugin in candidates if plugin.package == OWN]
    if len(candidates) > 1 and not own:
        packages = " and ".join(f"{plugin.package} {plugin.version}" for plugin in candidates)
        text = f"{packages} have the {_kind(group)} {name!r}; uninstall all but one of them"
        raise ConfigError(text)
    return own[0] if own else candidates[0]


def load(plugin: Plugin, kind: type[T]) -> T:
    """Import the object of a plugin; raises ConfigError, which names the package."""
    loaded = load_part(plugin, plugin.target)
    if not isinstance(loaded, kind):
        problem = f"{plugin.target} is no {kind.__name__}"
        raise ConfigError(f"{plugin} cannot be used: {problem}")
    return loaded


def load_part(plugin: Plugin, target: str) -> Any:
    """Import a name that a plugin declares; raises ConfigError, which names the package."""
    try:
        return resolve(target)
    except (Exception, SystemExit) as error:  # a package may raise anything on import
        problem = f"{type(error).__name__}: {error}"
        raise ConfigError(f"{plugin} cannot be loaded: {problem}") from error


def resolve(target: str) -> Any:
    """Import `package.module:attribute`, or a module; raises what its import raises."""
    module, _, attribute = target.partition(":")
    imported = import_module(module)
    return getattr(imported, attribute) if attribute else imported


def package_path(target: str) -> Path | None:
    """Return the folder or file of the top-level package of a name; None if there is none."""
    spec = find_spec(target.partition(":")[0].partition(".")[0])
    if spec is None:
        return None
    folders = list(spec.submodule_search_locations or ())
    return Path(folders[0] if folders else spec.origin or "")


def foreign_packages(group: str) -> list[Path]:
    """Return the folders and files of the packages with plugins of a group, besides the core."""
    found = (package_path(plugin.target) for plugin in installed(group))
    return [path for path in dict.fromkeys(found) if path not in (None, package_path(OWN))]


def check(plugin: Plugin) -> None:
    """Raise ConfigError if another plugin is used instead of this one."""
    used = find(plugin.group, plugin.name)
    if used is not plugin:
        raise ConfigError(f"{plugin} is ignored: {used.package} has this name")


def problems(group: str, kind: type[object]) -> Iterator[tuple[Plugin, str]]:
    """Yield the plugins of a group that cannot be used, and why."""
    for plugin in installed(group):
        try:
            check(plugin)
            load(plugin, kind)
        except ConfigError as error:
            yield plugin, str(error)


def _kind(group: str) -> str:
    """Return what a plugin of the group is: `channel`."""
    return group.rpartition(".")[2].removesuffix("s")


@cache
def _installed(group: str) -> dict[str, tuple[Plugin, ...]]:
    from importlib.metadata import entry_points

    plugins: dict[str, tuple[Plugin, ...]] = {}
    for entry in sorted(entry_points(group=group), key=lambda entry: entry.name):
        plugin = _plugin(entry)
        others = plugins.get(plugin.name, ())
        if plugin not in others:
            plugins[plugin.name] = (*others, plugin)
    return plugins


def _plugin(entry: EntryPoint) -> Plugin:
    if entry.dist is None:  # pragma: no cover - only of entry points that are built by hand
        return Plugin(entry.name, entry.value, "unknown", "", entry.group)
    package = re.sub(r"[-_.]+", "-", entry.dist.name).lower()
    return Plugin(entry.name, entry.value, package, entry.dist.version, entry.group)
