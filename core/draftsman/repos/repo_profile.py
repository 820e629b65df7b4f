"""Repository profiles: setup, validation and fix commands, and limits."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
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


@dataclass(frozen=True, slots=True)
class SavedProfile:
    """A stored profile with the results of its last check."""

    profile: RepoProfile
    checked_at: datetime | None
    checked_commit: str | None
    checks: list[dict[str, Any]]
    updated_by: str
    updated_at: datetime
