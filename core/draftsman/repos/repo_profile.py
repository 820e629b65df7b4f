"""Repository profiles: setup, validation and fix commands, and limits."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, Field, ValidationError, field_serializer, model_validator

from draftsman import field_errors
from draftsman.errors import UsageError
from draftsman.field_errors import matching
from draftsman.settings.agents import repo_config_names
from draftsman.settings.git import CommitSettings
from draftsman.settings.hours import LadderChoice
from draftsman.settings.network import Network, as_json
from draftsman.settings.policies import PathRule, PolicySettings
from draftsman.settings.profiles import (
    REPORT,
    CommandSettings,
    FixSettings,
    ProfileSettings,
    SetupSettings,
)
from draftsman.settings.section import Section
from draftsman.text import REQUEST_LIMIT, check_size, clean, clean_fields

MAX_COMMANDS: Final = 50
_KIND: Final = "allowed: lower-case letters, digits and _ + - without spaces, such as python"
_SECRET: Final = ("TOKEN", "SECRET", "PASSWORD", "PASSWD", "API_KEY", "PRIVATE_KEY")
FILES: Final = "{files}"
"""Word of the test command that stands for a test file."""


def is_among(path: str, patterns: Iterable[str]) -> bool:
    """Return whether a file matches a pattern, or is in a folder of the list."""
    return any(
        path.startswith(f"{pattern.rstrip('/')}/") or fnmatchcase(path, pattern)
        for pattern in patterns
    )


def folder(path: str) -> str:
    """Normalize a folder of a repository, '' for the root; raises ValueError."""
    if path.startswith("/") or "\\" in path or any(ord(char) < 32 for char in path):
        raise ValueError("must be a folder inside the repository, such as services/api")
    names = PurePosixPath(path).parts
    if ".." in names or ".git" in names or len(path) > 1000:
        raise ValueError("must be a folder inside the repository, such as services/api")
    return "/".join(names)


Folder = Annotated[str, AfterValidator(folder)]


def _public(env: dict[str, str]) -> dict[str, str]:
    for name, value in env.items():
        if not name.isidentifier() or len(value) > 10_000:
            raise ValueError(f"{name[:60]!r} is not a variable name, or its value is too long")
        if any(word in name.upper() for word in _SECRET):
            raise ValueError(f"{name} looks like a secret, but a profile is stored: use pass_env")
    return env


def _with_files(command: tuple[str, ...]) -> tuple[str, ...]:
    if FILES not in command:
        raise ValueError(f"must have the word {FILES}, such as pytest {FILES}")
    return command


LeftOut = Literal["ask", "include", "leave"]
Patterns = Annotated[tuple[str, ...], Field(max_length=1000)]


def _report(path: str) -> str:
    try:
        return folder(path)
    except ValueError:
        raise ValueError("must be a path in the folder of the profile, such as lcov.info") from None


ReportPath = Annotated[str, AfterValidator(_report), Field(min_length=1)]


class CoverageProfile(Section):
    """Coverage command of a profile, and its report."""

    command: tuple[str, ...] = Field(min_length=1)
    """Command that runs the tests and writes the report."""
    report: ReportPath = "lcov.info"
    """Path of the report in the folder of the profile, in the format of LCOV."""
    minimum: float | None = Field(None, gt=0, le=100)
    """Percentage of the changed lines that the tests must run; None: it is only recorded."""
    timeout: float = Field(900, gt=0)


class EvidenceProfile(Section):
    """Test command of a profile, and which files are tests."""

    test: Annotated[tuple[str, ...], AfterValidator(_with_files)]
    """Command that runs the test file `{files}`: exit code 0 if its tests pass."""
    files: Patterns = (
        "test_*.py",
        "*_test.py",
        "*.test.*",
        "*.spec.*",
        "*_test.go",
        "*_spec.rb",
        "*Test.java",
        "*Tests.java",
        "*Test.kt",
        "*Test.php",
        "*Tests.cs",
        "*_test.exs",
    )
    """Patterns of test files: of the name, or with `/` of the path."""
    support: Patterns = (
        "tests/",
        "test/",
        "spec/",
        "__tests__/",
        "testdata/",
        "fixtures/",
        "conftest.py",
    )
    """Files that tests need, besides test files: they are taken along to the other commit."""
    required: bool = True
    """Whether a new or changed test must fail on the base and pass on the work."""
    timeout: float = Field(300, gt=0)
    """Seconds for the tests of a file."""
    coverage: CoverageProfile | None = None
    """How the coverage of the changed lines is measured; None: it is not."""

    def is_test(self, path: str) -> bool:
        """Return whether a file has tests."""
        name = PurePosixPath(path).name
        return any(fnmatchcase(path if "/" in pattern else name, pattern) for pattern in self.files)

    def is_support(self, path: str) -> bool:
        """Return whether a file belongs to the tests, but has none itself."""
        name = PurePosixPath(path).name
        folders = (str(folder) for folder in PurePosixPath(path).parents)
        named = {pattern.rstrip("/") for pattern in self.support if pattern.endswith("/")}
        inside = any(folder.rpartition("/")[2] in named for folder in folders)
        return inside or is_among(path, self.support) or is_among(name, self.support)


class RepoProfile(ProfileSettings):
    """Profile of a repository, or of a folder of it."""

    path: Folder = ""
    """Folder in which the commands run; '' is the root."""
    profile_type: Annotated[str, matching(r"[a-z][a-z0-9_+-]{0,39}", _KIND)] = "unknown"
    setup_commands: tuple[SetupSettings, ...] = Field((), max_length=MAX_COMMANDS)
    """Commands that run in each new clone before the agent; a failure fails the run."""
    validation_commands: tuple[CommandSettings, ...] = Field((), max_length=MAX_COMMANDS)
    fix_commands: tuple[FixSettings, ...] = Field((), max_length=MAX_COMMANDS)
    env: Annotated[dict[str, str], AfterValidator(_public)] = Field({}, max_length=100)
    """Environment variables of the agent and the commands; no secrets."""
    agent: str | None = Field(None, min_length=1, max_length=100)
    """Default agent of the repository's jobs."""
    network: Network = True
    """Network of the setup commands, and the most that an agent has."""
    agent_config: tuple[str, ...] = ()
    """Agents that load their own configuration of the repository, such as hooks and servers."""
    budget: dict[str, Annotated[float, Field(gt=0)]] = Field({}, max_length=20)
    """Budget of a job: `cost_usd`, `input_tokens`, `output_tokens`."""
    path_allowlist: tuple[str, ...] | None = Field(None, max_length=1000)
    risky_paths: tuple[str, ...] | None = Field(None, max_length=1000)
    default_skills: tuple[str, ...] = Field((), max_length=100)
    check_files: Patterns = ()
    """Files that may decide whether work passes, besides all that are not ordinary."""
    ordinary_files: Patterns = ()
    """Files that decide nothing, though they are not ordinary by their name or folder."""
    lfs: bool = False
    """Whether clones have the contents of files of Git LFS, and the work stores them there."""
    submodules: bool = False
    """Whether clones have the files of submodules, read-only."""
    left_out: LeftOut = "ask"
    """Files that git leaves out, such as those of a repository that the agent made in the tree: ask
    what becomes of them, include them, or leave them out."""
    evidence: EvidenceProfile | None = None
    """How changed tests prove the work; None: they do not have to."""
    policy: PolicySettings | None = None
    """Keys that differ from the policy of the configuration."""
    git: CommitSettings | None = None
    """Keys that differ from those of the configuration about commits and branches."""
    ladders: LadderChoice = Field({})
    """Ladder of each kind of question that differs from `[questions]`."""
    max_iterations: int = Field(5, ge=1, le=1000)
    max_runtime_seconds: int = Field(900, ge=1, le=86_400 * 7)
    max_files_changed: int = Field(20, ge=1, le=1_000_000)
    max_loc_delta: int = Field(500, ge=1, le=100_000_000)

    @model_validator(mode="before")
    @classmethod
    def _cleaned(cls, data: Any) -> Any:
        return clean_fields(data)

    @model_validator(mode="after")
    def _check_names(self) -> RepoProfile:
        for commands in (self.setup_commands, self.validation_commands):
            names = [command.name for command in commands]
            if len(names) != len(set(names)):
                raise ValueError("two commands of a profile have the same name; make them differ")
        return self

    @field_serializer("policy", "git")
    def _own_keys(self, own: Section | None) -> dict[str, Any] | None:
        """Leave the other keys out, so that the configuration decides on them."""
        return None if own is None else own.model_dump(mode="json", exclude_unset=True)

    @property
    def limits(self) -> dict[str, Any]:
        """Limits and budget that the agent receives."""
        limits: dict[str, Any] = {
            "max_iterations": self.max_iterations,
            "max_runtime_seconds": self.max_runtime_seconds,
            "max_files_changed": self.max_files_changed,
            "max_loc_delta": self.max_loc_delta,
            "network": as_json(self.network),
        }
        for name in ("path_allowlist", "risky_paths"):
            if (paths := getattr(self, name)) is not None:
                limits[name] = list(paths)
        return limits | ({"budget": self.budget} if self.budget else {})


_MODELS: Final[dict[str, type[Section]]] = {
    "evidence.coverage.": CoverageProfile,
    "evidence.": EvidenceProfile,
    "policy.paths.": PathRule,
    "policy.": PolicySettings,
    "git.": CommitSettings,
    "": RepoProfile,
}
"""Models of a profile's tables, by the beginning of the names of their keys."""


def effective_profile(saved: RepoProfile | None, configured: ProfileSettings) -> ProfileSettings:
    """Return the profile with the commands of an agent.

    A saved profile without validation commands uses the configured validation commands, so that
    adding a repository does not turn validation off; so do missing fix commands then.
    """
    if saved is None:
        return configured
    if saved.validation_commands:
        return saved
    return ProfileSettings(
        validation_commands=configured.validation_commands,
        fix_commands=saved.fix_commands or configured.fix_commands,
    )


def profile(fields: Any) -> RepoProfile:
    """Parse a profile; raises UsageError."""
    try:
        parsed = RepoProfile.model_validate(check_size(clean(fields), REQUEST_LIMIT, "a profile"))
    except ValidationError as error:
        field, _ = field_errors.first_error(error)
        allowed = next(
            model.model_fields for prefix, model in _MODELS.items() if field.startswith(prefix)
        )
        raise field_errors.field_error(
            error, "profile", parent="profile", allowed=allowed
        ) from None
    names = repo_config_names() if parsed.agent_config else []
    if unknown := [name for name in parsed.agent_config if name not in names]:
        text = f"profile: agent_config has {unknown[0]!r:.100}; allowed: {', '.join(names)}"
        raise UsageError(text)
    return parsed


# Detection of a repository's profile from its files, without running any of them.


MAX_FILE_BYTES: Final = 1024 * 1024
"""Maximum bytes of a file that is read."""
RUFF: Final = ("{python}", "-P", "-m", "ruff")
PYTEST: Final = ("python3", "-m", "pytest")
TARGET: Final = re.compile(r"^([A-Za-z][\w.-]*)[ \t]*::?(?!=)", re.MULTILINE)
NO_TEST: Final = "no test specified"
"""Text of the test script in a new package.json of npm."""
LOCK_FILES: Final = {
    "pnpm-lock.yaml": ("pnpm", ("install", "--frozen-lockfile")),
    "yarn.lock": ("yarn", ("install", "--frozen-lockfile")),
    "bun.lock": ("bun", ("install", "--frozen-lockfile")),
    "bun.lockb": ("bun", ("install", "--frozen-lockfile")),
    "package-lock.json": ("npm", ("ci",)),
}


def detect_profile(folder: Path, path: str = "") -> RepoProfile:
    """Return the detected profile of a folder; `unknown`, without commands, if none matches."""
    for detect in DETECTORS:
        if (fields := detect(folder / path)) is not None:
            return RepoProfile.model_validate({**fields, "path": path})
    return RepoProfile(path=path)


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
    program, install = next(
        (LOCK_FILES[name] for name in LOCK_FILES if (folder / name).is_file()), ("npm", None)
    )
    checks = [
        CommandSettings(name=name, command=(program, "run", name), timeout=900)
        for name in ("lint", "typecheck", "test")
        if isinstance(scripts.get(name), str) and NO_TEST not in scripts[name]
    ]
    needs = package.get("dependencies") or package.get("devDependencies")
    setup = [SetupSettings(name="install", command=(program, *install))] if install else []
    return {
        "profile_type": "node",
        "validation_commands": checks,
        "setup_commands": setup if needs else [],
    }


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
        "setup_commands": [SetupSettings(name="install", command=("bundle", "install"))],
        "validation_commands": [CommandSettings(name="tests", command=run, timeout=900)],
    }


def _java(folder: Path) -> dict[str, Any] | None:
    if (folder / "gradlew").is_file():
        run: tuple[str, ...] = ("./gradlew", "--no-daemon", "check")
    elif (folder / "pom.xml").is_file():
        run = ("mvn", "-q", "-B", "verify")
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


@dataclass(frozen=True, slots=True)
class SavedProfile:
    """A stored profile with the results of its last check."""

    profile: RepoProfile
    checked_at: datetime | None
    checked_commit: str | None
    checks: list[dict[str, Any]]
    updated_by: str
    updated_at: datetime
