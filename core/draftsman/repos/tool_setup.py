"""How the tools of a repository are set up in a clone, detected from its lock files. Pure.

Nothing of the repository runs, and only the names of its files are read.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from draftsman.errors import UsageError

VENV_PYTHON: Final = ".venv/bin/python"
"""The interpreter of a project whose environment is in its folder."""
_SHELL: Final = re.compile(r"[|&;<>()$`*?~{}\n]|(?:^|\s)[A-Za-z_]\w*=")
"""What only a shell understands."""
_REQUIREMENTS: Final = re.compile(r"(?:dev[-_.]?)?requirements(?:[-_.]?(?:dev|tests?))?\.txt")


@dataclass(frozen=True, slots=True)
class ToolSetup:
    """A command that installs the tools of a repository in a clone."""

    file: str
    """The file that it was detected from; '' for one that a person gave."""
    command: tuple[str, ...]
    kind: str = ""
    """The type of the profiles that it is for."""
    python: str = ""
    """The interpreter that it makes in the folder; '' for none."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Variables that keep what it installs in the clone."""

    @property
    def text(self) -> str:
        """The command as in a shell."""
        return self.command[-1] if self.command[:2] == ("sh", "-c") else shlex.join(self.command)


def _row(kind: str, file: str, command: str, **env: str) -> ToolSetup:
    python = VENV_PYTHON if kind == "python" else ""
    return ToolSetup(file, tuple(command.split()), kind, python, env)


LOCK_FILES: Final = (
    _row("python", "uv.lock", "uv sync --frozen"),
    _row(
        "python",
        "poetry.lock",
        "poetry install --no-interaction",
        POETRY_VIRTUALENVS_IN_PROJECT="true",
    ),
    _row("python", "pdm.lock", "pdm sync", PDM_VENV_IN_PROJECT="true"),
    _row("python", "Pipfile.lock", "pipenv sync --dev", PIPENV_VENV_IN_PROJECT="1"),
    _row("node", "pnpm-lock.yaml", "pnpm install --frozen-lockfile"),
    _row("node", "yarn.lock", "yarn install --frozen-lockfile"),
    _row("node", "bun.lock", "bun install --frozen-lockfile"),
    _row("node", "bun.lockb", "bun install --frozen-lockfile"),
    _row("node", "package-lock.json", "npm ci"),
    _row("node", "npm-shrinkwrap.json", "npm ci"),
    _row("rust", "Cargo.lock", "cargo fetch --locked"),
    _row("go", "go.sum", "go mod download"),
    _row("ruby", "Gemfile.lock", "bundle install"),
    _row("ruby", "Gemfile", "bundle install"),
    _row("php", "composer.lock", "composer install --no-interaction"),
    _row("elixir", "mix.lock", "mix deps.get"),
    _row("dotnet", "packages.lock.json", "dotnet restore --locked-mode"),
    _row("java", "gradlew", "./gradlew --no-daemon testClasses"),
    _row("java", "mvnw", "./mvnw -q -B dependency:go-offline"),
    _row("java", "pom.xml", "mvn -q -B dependency:go-offline"),
)
"""The setup of each file, in order of precedence."""


def detect_setup(folder: Path, kind: str = "") -> ToolSetup | None:
    """Return how the tools of a folder are set up, for a type of profile; None if no file says.

    A profile of no language, such as one of a Makefile, takes that of any.
    """
    names = {path.name for path in folder.iterdir() if path.is_file()}
    is_any = kind in ("", "unknown", "make")
    for setup in LOCK_FILES:
        if setup.file in names and (is_any or setup.kind == kind):
            return setup
    return _of_requirements(names) if is_any or kind == "python" else None


def _of_requirements(names: set[str]) -> ToolSetup | None:
    files = sorted(filter(_REQUIREMENTS.fullmatch, names), key=lambda name: (len(name), name))
    if not files:
        return None
    listed = " ".join(f"-r {shlex.quote(name)}" for name in files)
    text = (
        "python3 -m venv .venv && echo '*' > .venv/.gitignore"
        f" && {VENV_PYTHON} -m pip install {listed}"
    )
    return ToolSetup(files[0], ("sh", "-c", text), "python", VENV_PYTHON)


def parse_setup(text: str) -> ToolSetup | None:
    """Return the setup that a person wrote, as in a shell; None for ''. Raises UsageError."""
    if not text.strip():
        return None
    try:
        words = tuple(shlex.split(text))
    except ValueError as error:
        raise UsageError(
            f"the setup command: {str(error).lower()}; write it as in a shell"
        ) from None
    known = next((row for row in LOCK_FILES if row.command[0] == words[0]), None)
    python = VENV_PYTHON if ".venv" in text or (known and known.python) else ""
    command = ("sh", "-c", text.strip()) if _SHELL.search(text) else words
    return ToolSetup("", command, python=python, env=known.env if known else {})
