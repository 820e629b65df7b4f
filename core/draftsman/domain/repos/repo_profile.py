"""Repository profiles: setup, validation and fix commands, and limits."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Annotated, Any, Final

from pydantic import AfterValidator, Field, ValidationError, model_validator

from draftsman import field_errors
from draftsman.domain.text import REQUEST_LIMIT, check_size, clean, clean_fields
from draftsman.field_errors import matching
from draftsman.settings import CommandSettings, FixSettings, ProfileSettings, SetupSettings
from draftsman.settings.known_agents import RepoConfigName
from draftsman.settings.network import Network, as_json

MAX_COMMANDS: Final = 50
_KIND: Final = "allowed: lower-case letters, digits and _ + - without spaces, such as python"
_SECRET: Final = ("TOKEN", "SECRET", "PASSWORD", "PASSWD", "API_KEY", "PRIVATE_KEY")


def folder(path: str) -> str:
    """Normalize a folder of a repository, '' for the root; raises ValueError."""
    if path.startswith("/") or "\\" in path or any(ord(char) < 32 for char in path):
        raise ValueError("must be a folder inside the repository, such as services/api")
    parts = PurePosixPath(path).parts
    if ".." in parts or ".git" in parts or len(path) > 1000:
        raise ValueError("must be a folder inside the repository, such as services/api")
    return "/".join(parts)


Folder = Annotated[str, AfterValidator(folder)]


def _public(env: dict[str, str]) -> dict[str, str]:
    for name, value in env.items():
        if not name.isidentifier() or len(value) > 10_000:
            raise ValueError(f"{name[:60]!r} is not a variable name, or its value is too long")
        if any(word in name.upper() for word in _SECRET):
            raise ValueError(f"{name} looks like a secret, but a profile is stored: use pass_env")
    return env


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
    agent_config: tuple[RepoConfigName, ...] = ()
    """Agents that load their own configuration of the repository, such as hooks and servers."""
    budget: dict[str, Annotated[float, Field(gt=0)]] = Field({}, max_length=20)
    """Budget of a job: `cost_usd`, `input_tokens`, `output_tokens`."""
    path_allowlist: tuple[str, ...] | None = Field(None, max_length=1000)
    risky_paths: tuple[str, ...] | None = Field(None, max_length=1000)
    default_skills: tuple[str, ...] = Field((), max_length=100)
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
        return RepoProfile.model_validate(check_size(clean(fields), REQUEST_LIMIT, "a profile"))
    except ValidationError as error:
        allowed = RepoProfile.model_fields
        raise field_errors.field_error(
            error, "profile", parent="profile", allowed=allowed
        ) from None
