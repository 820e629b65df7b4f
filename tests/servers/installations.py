"""Servers of each supported major version: installed on this machine, or from a pinned package."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from tests.servers import packages
from tests.servers.packages import Unavailable

MAJORS: Final = (15, 16, 17, 18)
PLACES: Final = (
    "/usr/lib/postgresql/{}/bin",
    "/usr/pgsql-{}/bin",
    "/usr/local/opt/postgresql@{}/bin",
    "/opt/homebrew/opt/postgresql@{}/bin",
)
"""Folder of the major versions in distributions."""


@dataclass(frozen=True, slots=True)
class Installation:
    """The programs of a version of PostgreSQL."""

    programs: Path
    """The folder with `initdb`, `pg_ctl` and `postgres`."""
    version: str
    packaged: bool = False
    """Whether it is from a pinned package, which may be copied, as its paths are relative."""

    @property
    def major(self) -> int:
        """Return its major version."""
        return int(self.version.split(".")[0])

    def __str__(self) -> str:
        return f"PostgreSQL {self.version} ({self.programs})"


@cache
def installation(major: int) -> Installation:
    """Return the installation of a major version, preferably the machine's; raises Unavailable."""
    for place in PLACES:
        programs = Path(place.format(major))
        if all((programs / name).exists() for name in ("initdb", "pg_ctl", "postgres")):
            return Installation(programs, _version(programs))
    programs = packages.install(major) / "bin"
    return Installation(programs, _version(programs), packaged=True)


def _version(programs: Path) -> str:
    command = [str(programs / "postgres"), "--version"]
    try:
        done = subprocess.run(command, check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        text = str(getattr(error, "stderr", None) or error).strip()
        raise Unavailable(f"{command[0]} does not run: {text.splitlines()[-1]}") from None
    return done.stdout.split()[2]
