"""Detection of a repository's profile from its files, without running any of them."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from draftsman.repos.repo_profile import RepoProfile
from draftsman.repos.tool_setup import ToolSetup, detect_setup
from draftsman.settings.profiles import REPORT, CommandSettings, FixSettings, SetupSettings

SETUP_TIMEOUT: Final = 1800
"""Seconds for the setup of a large project."""
MAX_FILE_BYTES: Final = 1024 * 1024
"""Maximum bytes of a file that is read."""
RUFF: Final = ("{python}", "-P", "-m", "ruff")
PYTEST: Final = ("python3", "-m", "pytest")
TARGET: Final = re.compile(r"^([A-Za-z][\w.-]*)[ \t]*::?(?!=)", re.MULTILINE)
NO_TEST: Final = "no test specified"
"""Text of the test script in a new package.json of npm."""


def detect_profile(folder: Path, path: str = "", setup: ToolSetup | None = None) -> RepoProfile:
    """Return the detected profile of a folder; `unknown`, without commands, if none matches.

    With a `setup`, its command runs in each clone, and the checks use the tools that it installs.
    """
    found_fields = (detect(folder / path) for detect in DETECTORS)
    fields: dict[str, Any] = next(filter(None, found_fields), {})
    found = RepoProfile.model_validate({**fields, "path": path})
    if setup is None:
        return found
    checks = tuple(_with_tools(check, setup) for check in found.validation_commands)
    install = SetupSettings(name="setup", command=setup.command, timeout=SETUP_TIMEOUT)
    return found.model_copy(
        update={
            "setup_commands": (install,),
            "validation_commands": checks,
            "env": {**found.env, **setup.env},
        }
    )


def detect_tools(folder: Path, path: str = "") -> ToolSetup | None:
    """Return how the tools of a folder are set up; None if it has no lock file, or needs none."""
    kind = detect_profile(folder, path).profile_type
    if kind == "node" and not _needs_packages(folder / path):
        return None
    return detect_setup(folder / path, kind)


def _with_tools(check: CommandSettings, setup: ToolSetup) -> CommandSettings:
    """Return a check that runs with the interpreter that a setup makes."""
    if not setup.python:
        return check
    words = check.command
    if words[0] == "python3":
        words = (setup.python, *words[1:])
    elif words[0] == "mypy":
        words = (setup.python, "-m", *words)
    return check.model_copy(update={"command": words})


def _python(folder: Path) -> dict[str, Any] | None:
    project = _toml(folder / "pyproject.toml")
    names = ("pyproject.toml", "setup.py", "setup.cfg", "requirements.txt")
    if not any((folder / name).is_file() for name in names):
        return None
    tools = project.get("tool") if isinstance(project.get("tool"), dict) else {}
    assert isinstance(tools, dict)  # noqa: S101 - see above
    checks = []
    fixes = []
    if "ruff" in tools or (folder / "ruff.toml").is_file() or (folder / ".ruff.toml").is_file():
        checks.append(CommandSettings(name="lint", command=(*RUFF, "check", ".")))
        fix = (*RUFF, "check", "--fix", "--exit-zero", ".")
        fixes = [
            FixSettings(name="lint", command=fix),
            FixSettings(name="format", command=(*RUFF, "format", ".")),
        ]
    if "mypy" in tools or (folder / "mypy.ini").is_file():
        checks.append(CommandSettings(name="types", command=("mypy", "."), required=False))
    tested = any((folder / name).is_dir() for name in ("tests", "test"))
    if "pytest" in tools or tested or (folder / "pytest.ini").is_file():
        run = (*PYTEST, "-q", "-p", "no:cacheprovider", f"--junitxml={REPORT}")
        checks.append(CommandSettings(name="tests", command=run, timeout=900))
    return {"profile_type": "python", "validation_commands": checks, "fix_commands": fixes}


def _node(folder: Path) -> dict[str, Any] | None:
    package = _json(folder / "package.json")
    if package is None:
        return None
    scripts = package.get("scripts")
    scripts = scripts if isinstance(scripts, dict) else {}
    lock = detect_setup(folder, "node")
    program = "npm" if lock is None else lock.command[0]
    checks = [
        CommandSettings(name=name, command=(program, "run", name), timeout=900)
        for name in ("lint", "typecheck", "test")
        if isinstance(scripts.get(name), str) and NO_TEST not in scripts[name]
    ]
    return {"profile_type": "node", "validation_commands": checks}


def _needs_packages(folder: Path) -> bool:
    package = _json(folder / "package.json") or {}
    return bool(package.get("dependencies") or package.get("devDependencies"))


def _go(folder: Path) -> dict[str, Any] | None:
    if not (folder / "go.mod").is_file():
        return None
    checks = [
        CommandSettings(name="vet", command=("go", "vet", "./...")),
        CommandSettings(name="tests", command=("go", "test", "./..."), timeout=900),
    ]
    fixes = [FixSettings(name="format", command=("gofmt", "-w", "."))]
    return {"profile_type": "go", "validation_commands": checks, "fix_commands": fixes}


def _rust(folder: Path) -> dict[str, Any] | None:
    if not (folder / "Cargo.toml").is_file():
        return None
    lint = CommandSettings(
        name="lint", command=("cargo", "clippy", "--quiet"), required=False, timeout=1800
    )
    tests = CommandSettings(name="tests", command=("cargo", "test", "--quiet"), timeout=1800)
    fixes = [FixSettings(name="format", command=("cargo", "fmt"))]
    return {"profile_type": "rust", "validation_commands": [lint, tests], "fix_commands": fixes}


def _ruby(folder: Path) -> dict[str, Any] | None:
    if not (folder / "Gemfile").is_file():
        return None
    run = ("bundle", "exec", "rspec") if (folder / "spec").is_dir() else ("bundle", "exec", "rake")
    return {
        "profile_type": "ruby",
        "validation_commands": [CommandSettings(name="tests", command=run, timeout=900)],
    }


def _java(folder: Path) -> dict[str, Any] | None:
    if (folder / "gradlew").is_file():
        run: tuple[str, ...] = ("./gradlew", "--no-daemon", "check")
    elif (folder / "pom.xml").is_file():
        program = "./mvnw" if (folder / "mvnw").is_file() else "mvn"
        run = (program, "-q", "-B", "verify")
    else:
        return None
    check = CommandSettings(name="tests", command=run, timeout=1800)
    return {"profile_type": "java", "validation_commands": [check]}


def _make(folder: Path) -> dict[str, Any] | None:
    names = ("GNUmakefile", "makefile", "Makefile")
    file = next((folder / name for name in names if (folder / name).is_file()), None)
    if file is None:
        return None
    targets = set(TARGET.findall(_text(file)))
    checks = [
        CommandSettings(name=name, command=("make", name), timeout=900)
        for name in ("lint", "check", "test")
        if name in targets
    ]
    fixes = [
        FixSettings(name=name, command=("make", name))
        for name in ("format", "fmt")
        if name in targets
    ]
    return {"profile_type": "make", "validation_commands": checks, "fix_commands": fixes}


def _with_make(detect: Callable[[Path], dict[str, Any] | None]) -> Callable[[Path], Any]:
    """Return a detector that falls back to the validation commands of the Makefile."""

    def detect_with_make(folder: Path) -> dict[str, Any] | None:
        fields = detect(folder)
        if fields is None or fields["validation_commands"]:
            return fields
        make = _make(folder)
        return fields | {"validation_commands": make["validation_commands"]} if make else fields

    return detect_with_make


DETECTORS: Final = (*map(_with_make, (_python, _node, _go, _rust, _ruby, _java)), _make)
"""Detectors, in order of precedence."""


def _text(file: Path) -> str:
    """Return a file's text; empty for a symbolic link or a file that is too large."""
    if file.is_symlink() or file.stat().st_size > MAX_FILE_BYTES:
        return ""
    return file.read_text(encoding="utf-8", errors="replace")


def _toml(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(_text(file)) if file.is_file() else {}
    except tomllib.TOMLDecodeError:
        return {}


def _json(file: Path) -> dict[str, Any] | None:
    if not file.is_file():
        return None
    try:
        data = json.loads(_text(file))
    except (ValueError, RecursionError):
        return {}
    return data if isinstance(data, dict) else {}
