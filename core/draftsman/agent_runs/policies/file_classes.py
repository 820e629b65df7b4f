"""Classes of files that a policy names: lock files, migrations, configuration of CI, licenses."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from typing import Final

from draftsman.repos.check_files import FOLDERS, is_ci_file

LOCK_FILES: Final = (
    *("*.lock", "*.lockb", "*.lock.hcl", "*.lockfile", "*-lock.json", "*-lock.yaml"),
    *("Package.resolved", "cargo.lock", "go.sum", "npm-shrinkwrap.json", "packages.lock.json"),
)
"""Names of lock files."""
MIGRATION_FOLDERS: Final = ("migrations", "db/migrate", "alembic/versions")
"""Folders of migrations, at any depth."""
MIGRATION_FILES: Final = re.compile(r"[VUR]\d*[\w.]*__\w.*\.(sql|java|py)")
"""Names of the migrations of Flyway."""
LICENSES: Final = re.compile(
    r"((un)?licen[cs]e|copying|notice|copyright|patents)"
    r"([-._](agpl|apache|bsd|cc0|epl|gpl|isc|lesser|lgpl|mit|mpl|third.?party)[\w.-]*?)?"
    r"([.](adoc|html|md|rst|txt))?",
    re.IGNORECASE,
)
"""Names of licenses and notices."""


def classes_of(path: str) -> list[str]:
    """Return the classes of a file, as keys of a policy."""
    return [name for name, matches in _CLASSES.items() if matches(path)]


def classes_of_folder(path: str) -> list[str]:
    """Return the classes of the files that may be in a folder, or in a folder below it."""
    below = [f"{path}/{part}/x" for part in _PARTS]
    return list(dict.fromkeys(name for file in (f"{path}/x", *below) for name in classes_of(file)))


def _is_ci(path: str) -> bool:
    """Return whether a file configures the checks of a repository, or who approves them."""
    return is_ci_file(path) or PurePosixPath(path).name == "CODEOWNERS"


def _is_migration(path: str) -> bool:
    folder = f"/{PurePosixPath(path).parent}/"
    inside = any(f"/{name}/" in folder for name in MIGRATION_FOLDERS)
    return inside or MIGRATION_FILES.fullmatch(PurePosixPath(path).name) is not None


def _is_license(path: str) -> bool:
    name = PurePosixPath(path).name
    return LICENSES.fullmatch(name) is not None or path.startswith("LICENSES/")


def _is_lock_file(path: str) -> bool:
    return any(fnmatchcase(PurePosixPath(path).name, pattern) for pattern in LOCK_FILES)


_PARTS: Final = tuple(
    "/".join(parts[start:])
    for parts in (folder.split("/") for folder in (*MIGRATION_FOLDERS, *FOLDERS))
    for start in range(1, len(parts))
)
"""Ends of the folders that a class has, such as `workflows`."""
_CLASSES: Final[Mapping[str, Callable[[str], bool]]] = {
    "ci": _is_ci,
    "licenses": _is_license,
    "migrations": _is_migration,
    "lock_files": _is_lock_file,
}
