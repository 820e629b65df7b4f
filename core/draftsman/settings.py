"""What can be configured, with its defaults.

Order of precedence: arguments, then `DRAFTSMAN_*` in the environment (`__` between levels:
`DRAFTSMAN_WORKER__SLOTS=4`), then one `draftsman.toml`, then the defaults below. The file is
`--config`, `$DRAFTSMAN_CONFIG`, the user's, or `/etc/draftsman/draftsman.toml`: never one in the
current directory, because a cloned repository must not bring `[handlers]`.
`config/draftsman.toml` documents every key; a test holds the two together.
"""

from __future__ import annotations

import os
import re
import reprlib
import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from platformdirs import user_config_dir, user_data_dir
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic_core import ErrorDetails
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
)

from draftsman.errors import ConfigError

Role = Literal["invoker", "responder", "approver", "operator"]
SYSTEM_CONFIG = Path("/etc/draftsman/draftsman.toml")


def _expanded(value: object) -> object:
    return os.path.expanduser(value) if isinstance(value, str) else value  # noqa: PTH111


UserPath = Annotated[Path, BeforeValidator(_expanded)]
"""A path in which `~` is the user's home."""
_Count = Annotated[int, Field(ge=1, le=1200)]
Months = Annotated[_Count | None, BeforeValidator(lambda v: None if v == "never" else v)]


class Section(BaseModel):
    """A table of the file: immutable, and strict about its keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class DatabaseSettings(Section):
    """Where the truth is."""

    pool_size: int = Field(5, ge=1, le=100)
    """Connections a process keeps at most, its LISTEN connection excluded."""
    connect_timeout: float = Field(10, gt=0, le=300)
    """Seconds to wait for a connection before a command gives up."""
    statement_timeout: float = Field(60, gt=0, le=3600)
    """Seconds after which the server ends a statement."""


class EmbeddedSettings(Section):
    """The server that draftsman starts itself where no URL is given."""

    idle_stop: float = Field(600, ge=0, le=86_400 * 7)
    """Seconds after its last connection until it stops; 0 keeps it up."""


class WorkerSettings(Section):
    """Claiming and running."""

    slots: int = Field(10, ge=1, le=1000)
    """Runs at the same time."""
    prefetch: int = Field(0, ge=0, le=1000)
    """Jobs claimed ahead of a free slot."""
    queues: tuple[str, ...] = ("default",)
    """Queues to claim from."""
    poll: float = Field(1.0, gt=0, le=60)
    """Seconds between looks when no notification comes."""
    heartbeat: float = Field(30, gt=0, le=300)
    """Seconds between heartbeats (seed 002)."""
    lease: float = Field(300, gt=0, le=3600)
    """Seconds without a heartbeat after which a run is lost (seed 002)."""
    drain: float = Field(45, ge=0, le=3600)
    """Seconds that a shutdown waits for runs to finish by themselves (seed 002)."""
    abort: float = Field(10, ge=0, le=600)
    """Seconds that aborted runs get to save a checkpoint before they are killed."""

    @model_validator(mode="after")
    def _heartbeats_fit_the_lease(self) -> Self:
        if self.heartbeat * 2 >= self.lease:
            raise ValueError("heartbeat must be less than half of lease")
        return self


class SweepSettings(Section):
    """Periodic maintenance by the leader."""

    interval: float = Field(60, gt=0, le=3600)
    """Seconds between sweeps (seed 002)."""
    lease: float = Field(30, ge=1, le=600)
    """Seconds a leader keeps its lease; renewed at half of it."""
    limit: int = Field(100, ge=1, le=10_000)
    """Rows that one sweep changes at most."""
    reap_after: float = Field(86_400, ge=60)
    """Seconds after which a dead worker's row is removed."""


class RetentionSettings(Section):
    """How long what is over stays in the database."""

    events: Months = None
    """Months after which events leave it, for an archive; None (`never`): they stay."""
    logs: Months = None
    """Months after the end of a job when the logs of its runs are deleted; None: they stay."""
    archive: UserPath | None = None
    """Folder of the archives; None: `archive` in the data directory."""


class QuestionSettings(Section):
    """Defaults for what is asked."""

    expires_in: float | None = Field(86_400, gt=0)
    """Seconds until a question expires (24 h, seed 003); `never` in TOML is written as 0."""
    self_approval: bool = False
    """Whether the requester of a job may approve its gates."""

    @model_validator(mode="before")
    @classmethod
    def _zero_is_never(cls, data: Any) -> Any:
        if isinstance(data, dict) and data.get("expires_in") in (0, "0"):
            return {**data, "expires_in": None}
        return data


class TypeSettings(Section):
    """Limits of one job type; unset keys keep the built-in ones."""

    max_attempts: int | None = Field(None, ge=0, le=100)
    """Infrastructure failures and lost runs that a job may survive."""
    max_retries: int | None = Field(None, ge=0, le=100)
    """Application failures that a job may survive."""
    base_delay: float | None = Field(None, gt=0)
    """Seconds before the first application retry, before jitter."""
    max_delay: float | None = Field(None, gt=0)
    """Seconds at most between two application retries."""
    multiplier: float | None = Field(None, ge=1, le=10)
    """Growth of the delay from one retry to the next."""
    timeout: float | None = Field(None, gt=0)
    """Seconds of running time, summed over runs, waiting for people excluded."""
    on_lost: Literal["retry", "resume", "fail", "new_job"] | None = None
    """What follows when a worker dies with a run of this type."""


class AgentSettings(Section):
    """A program that `run_agent` can drive."""

    command: tuple[str, ...] = Field(min_length=1)
    """Program and arguments; `{python}` is this interpreter."""
    env: dict[str, str] = {}
    """Variables set for it."""
    pass_env: tuple[str, ...] = ()
    """Names of variables it may inherit besides the allowlist."""


class CommandSettings(Section):
    """A validation command of a profile."""

    name: str = Field(min_length=1)
    command: tuple[str, ...] = Field(min_length=1)
    required: bool = True
    timeout: float = Field(300, gt=0)


class FixSettings(Section):
    """A fix command of a profile."""

    name: str = Field(min_length=1)
    command: tuple[str, ...] = Field(min_length=1)
    level: Literal["safe", "all"] = "safe"
    """`safe` runs for both answers, `all` only when the person said so."""
    timeout: float = Field(300, gt=0)


def _ruff_checks() -> tuple[CommandSettings, ...]:
    return (
        CommandSettings(name="lint", command=("{python}", "-P", "-m", "ruff", "check", ".")),
        CommandSettings(
            name="format",
            command=("{python}", "-P", "-m", "ruff", "format", "--check", "."),
            required=False,
        ),
    )


def _ruff_fixes() -> tuple[FixSettings, ...]:
    fix = ("{python}", "-P", "-m", "ruff", "check", "--fix", "--exit-zero", ".")
    return (
        FixSettings(name="lint", command=fix),
        FixSettings(name="format", command=("{python}", "-P", "-m", "ruff", "format", ".")),
        FixSettings(name="unsafe", command=(*fix[:-1], "--unsafe-fixes", "."), level="all"),
    )


class ProfileSettings(Section):
    """How a repository is validated and fixed."""

    validation_commands: tuple[CommandSettings, ...] = Field(default_factory=_ruff_checks)
    fix_commands: tuple[FixSettings, ...] = Field(default_factory=_ruff_fixes)


class PersonSettings(Section):
    """One person, however they reach us."""

    login: str | None = None
    """Login on this machine, or the database role on a remote server."""
    slack: str | None = None
    trello: str | None = None
    roles: tuple[Role, ...] = ()


class LogSettings(Section):
    """What the processes say."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    file: UserPath | None = None
    """Also write to this file; when it cannot be written, one line says so and work goes on."""


def _tidy() -> dict[str, AgentSettings]:
    return {"tidy": AgentSettings(command=("{python}", "-m", "draftsman.agents.tidy"))}


class Settings(BaseSettings):
    """All of the configuration. Build it with `load`."""

    model_config = SettingsConfigDict(
        env_prefix="DRAFTSMAN_",
        env_nested_delimiter="__",
        env_ignore_empty=True,
        extra="forbid",
        frozen=True,
    )

    database_url: SecretStr | None = None
    """PostgreSQL 15 or later; unset means the embedded server."""
    listen_url: SecretStr | None = None
    """A session connection for LISTEN where `database_url` is a transaction pooler."""
    data_dir: UserPath = Field(default_factory=lambda: _default_data_dir())
    """Embedded database, mirrors and run directories."""
    database: DatabaseSettings = DatabaseSettings()
    embedded: EmbeddedSettings = EmbeddedSettings()
    worker: WorkerSettings = WorkerSettings()
    sweeps: SweepSettings = SweepSettings()
    retention: RetentionSettings = RetentionSettings()
    questions: QuestionSettings = QuestionSettings()
    log: LogSettings = LogSettings()
    handlers: dict[str, str] = {}
    types: dict[str, TypeSettings] = {}
    agents: dict[str, AgentSettings] = Field(default_factory=_tidy)
    profile: ProfileSettings = Field(default_factory=ProfileSettings)
    profiles: dict[str, ProfileSettings] = {}
    people: dict[str, PersonSettings] = {}
    groups: dict[str, tuple[str, ...]] = {}

    @field_validator("database_url", "listen_url")
    @classmethod
    def _is_a_url(cls, value: SecretStr | None) -> SecretStr | None:
        secret = value.get_secret_value() if value else ""
        if secret and not secret.startswith(("postgresql://", "postgres://")) and "=" not in secret:
            raise ValueError("give a URL: postgresql://user@host/database")
        return value

    @model_validator(mode="after")
    def _names_hold_together(self) -> Self:
        for group, members in self.groups.items():
            if unknown := [name for name in members if name not in self.people]:
                raise ValueError(f"groups.{group} names {unknown[0]!r}, who is not in people")
        for channel in ("login", "slack", "trello"):
            owners: dict[str, str] = {}
            for name, person in self.people.items():
                if (known := getattr(person, channel)) is None:
                    continue
                if (other := owners.setdefault(known, name)) != name:
                    raise ValueError(f"people.{other} and people.{name} share {channel} {known!r}")
        if "tidy" not in self.agents:
            object.__setattr__(self, "agents", {**_tidy(), **self.agents})
        return self

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Let the environment win over the file, which `load` passes as arguments."""
        return (env_settings, init_settings)


def load(config: Path | None = None) -> Settings:
    """Read the configuration.

    Raises ConfigError in one line that names the file or variable, the key, the value and what is
    allowed.
    """
    path = config_path(config)
    data = _read(path) if path else {}
    try:
        return Settings(**data)
    except ValidationError as error:
        raise ConfigError(_explain(error, path)) from None
    except SettingsError as error:
        raise ConfigError(_unparsable(error)) from None


def _default_data_dir() -> Path:
    if os.geteuid() == 0:
        return Path("/var/lib/draftsman")
    return Path(user_data_dir("draftsman", appauthor=False))


def config_path(explicit: Path | None) -> Path | None:
    """Return the file that is read: the one named, or the first that there is; None without one."""
    if explicit is not None:
        return explicit
    if name := os.environ.get("DRAFTSMAN_CONFIG"):
        return Path(name)
    user = Path(user_config_dir("draftsman", appauthor=False)) / "draftsman.toml"
    # Not Path.is_file: it raises where a folder may not be entered, as root's under `sudo -u`.
    return next((path for path in (user, SYSTEM_CONFIG) if os.path.isfile(path)), None)  # noqa: PTH113


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}; give --config a readable file") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: not valid TOML: {error}") from None


def _explain(error: ValidationError, path: Path | None) -> str:
    first = error.errors()[0]
    key = ".".join(str(part) for part in first["loc"]) or "configuration"
    origin = _variable(first["loc"]) or (str(path) if path else "configuration")
    if first["type"] == "extra_forbidden":
        return f"{origin}: unknown key {key!r}; allowed here: {', '.join(_allowed(first['loc']))}"
    return f"{origin}: {key}{_shown(first)}: {first['msg'].removeprefix('Value error, ')}"


def _shown(error: ErrorDetails) -> str:
    """Return the wrong value, cut; nothing for tables, lists and what may hold a secret."""
    value, place = error["input"], error["loc"]
    if not isinstance(value, str | int | float) or "env" in place or str(place[-1]).endswith("url"):
        return ""
    return f" is {reprlib.repr(value)}"


def _variable(location: tuple[int | str, ...]) -> str | None:
    """Return the environment variable that the value at `location` came from, if one did."""
    given = {name.upper(): name for name in os.environ}
    for length in range(len(location), 0, -1):
        name = "DRAFTSMAN_" + "__".join(str(part) for part in location[:length]).upper()
        if name in given:
            return given[name]
    return None


def _unparsable(error: SettingsError) -> str:
    """Name the variables that may be meant: the library tells the table, not the key."""
    table = re.search(r'field "(\w+)"', str(error))
    prefix = f"DRAFTSMAN_{table[1] if table else ''}".upper()
    names = sorted(name for name in os.environ if name.upper().startswith(prefix))
    return f"{', '.join(names)}: lists and tables are written as JSON here, such as '[\"default\"]'"


def _allowed(location: tuple[int | str, ...]) -> list[str]:
    """Return the keys allowed beside the offending one."""
    model: type[BaseModel] = Settings
    for part in location[:-1]:
        field = model.model_fields.get(str(part))
        if field is None:
            continue
        for candidate in (field.annotation, *getattr(field.annotation, "__args__", ())):
            if isinstance(candidate, type) and issubclass(candidate, BaseModel):
                model = candidate
    return sorted(model.model_fields)
