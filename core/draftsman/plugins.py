"""Plugins: what installed packages declare as entry points.

A group is a kind of plugin, such as `draftsman.channels`. Entry points are found without an import
of their packages, and loaded one by one, so that a broken package harms no other.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from draftsman.errors import ConfigError

if TYPE_CHECKING:
    from importlib.metadata import Distribution, EntryPoint

OWN: Final = "draftsman"
"""The distribution whose names no other package can take."""
CHANNELS: Final = "draftsman.channels"
"""Group of `ChannelPlugin` objects."""
FORGES: Final = "draftsman.forges"
"""Group of `ForgePlugin` objects, the kinds of forges."""
AGENTS: Final = "draftsman.agents"
"""Group of `AgentPlugin` objects, the coding agents and their kinds."""
GROUPS: Final = (CHANNELS, FORGES, AGENTS)
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
    return tuple(plugin for name in _group(group) for plugin in _group(group)[name])


def names(group: str) -> list[str]:
    """Return the names of a group's plugins, without loading them."""
    return list(_group(group))


def find(group: str, name: str) -> Plugin:
    """Return the plugin of a name; raises ConfigError if there is none, or more than one."""
    candidates = _group(group).get(name, ())
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


def _group(group: str) -> dict[str, tuple[Plugin, ...]]:
    return _installed()[group]


@cache
def _installed() -> dict[str, dict[str, tuple[Plugin, ...]]]:
    """Return the plugins of each group: what is installed is read once for all of them."""
    from importlib.metadata import entry_points

    found = entry_points()
    read = cache(_name_and_version)
    return {group: _by_name(found.select(group=group), read) for group in GROUPS}


def _by_name(
    entries: Iterable[EntryPoint], read: Callable[[Distribution], tuple[str, str]]
) -> dict[str, tuple[Plugin, ...]]:
    plugins: dict[str, tuple[Plugin, ...]] = {}
    for entry in sorted(entries, key=lambda entry: entry.name):
        # only an entry point that is built by hand has no distribution
        package, version = read(entry.dist) if entry.dist else ("unknown", "")
        plugin = Plugin(entry.name, entry.value, package, version, entry.group)
        others = plugins.get(plugin.name, ())
        if plugin not in others:
            plugins[plugin.name] = (*others, plugin)
    return plugins


def _name_and_version(distribution: Distribution) -> tuple[str, str]:
    metadata = distribution.metadata  # parsed by each access, with the whole README
    return re.sub(r"[-_.]+", "-", metadata["Name"]).lower(), metadata["Version"]
