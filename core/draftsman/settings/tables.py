"""The tables of the configuration, with their defaults."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from draftsman.field_errors import matching

Role = Literal["invoker", "responder", "approver", "operator"]


def _expanded(value: object) -> object:
    if not isinstance(value, str):
        return value
    found = os.path.expanduser(value)  # noqa: PTH111
    if found.startswith("~"):
        raise ValueError("there is no such user; give an absolute path")
    return found


UserPath = Annotated[Path, BeforeValidator(_expanded)]
"""A path in which `~` is the user's home."""
_WEEK = 86_400.0 * 7
_Count = Annotated[int, Field(ge=1, le=1200)]
Months = Annotated[_Count | None, BeforeValidator(lambda v: None if v == "never" else v)]


def _is_a_zone(value: str) -> str:
    try:
        ZoneInfo(value)
    except (KeyError, ValueError, OSError):
        raise ValueError("no time zone that is known here; give one like Europe/Berlin") from None
    return value


def _leaves_time(value: str) -> str:
    if value[:5] == value[6:]:
        raise ValueError("quiet hours that never end; give two different times, or none")
    return value


_CLOCK = r"([01]\d|2[0-3]):[0-5]\d"
_Hours = Annotated[
    str,
    matching(rf"none|{_CLOCK}-{_CLOCK}", "give two times of a day, such as 22:00-07:00, or none"),
]
Hours = Annotated[_Hours, AfterValidator(_leaves_time)]
"""Of every day, like `22:00-07:00`; `none`: none."""
Zone = Annotated[str, AfterValidator(_is_a_zone)]
"""A name of the IANA time zone database."""


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
    """Seconds between heartbeats; less than half of `lease`."""
    lease: float = Field(300, gt=0, le=3600)
    """Seconds without a heartbeat after which a run is lost."""
    drain: float = Field(45, ge=0, le=3600)
    """Seconds that a shutdown waits for runs to finish before it aborts them."""
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
    """Seconds between sweeps."""
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
    """Seconds until a question expires; None: never, which TOML writes as 0."""
    self_approval: bool = False
    """Whether the requester of a job may approve its gates."""
    escalate_to: str | None = Field(None, min_length=1)
    """Group or person whom questions escalate to that name nobody."""
    quiet: Hours | None = None
    """Quiet hours of whoever has none of their own: no reminders; None: at any time."""
    timezone: Zone = "UTC"
    """Time zone of whoever has none of their own."""

    @model_validator(mode="before")
    @classmethod
    def _zero_is_never(cls, data: Any) -> Any:
        if isinstance(data, dict) and data.get("expires_in") in (0, "0"):
            return {**data, "expires_in": None}
        return data


class LimitSettings(Section):
    """Limits of a job type, an agent or a tool; unset keys keep those that are there without it."""

    max_attempts: int | None = Field(None, ge=0, le=100)
    """Infrastructure failures and lost runs that a job may survive."""
    max_retries: int | None = Field(None, ge=0, le=100)
    """Application failures that a job may survive."""
    base_delay: float | None = Field(None, gt=0, le=_WEEK)
    """Seconds before the first application retry, before jitter."""
    max_delay: float | None = Field(None, gt=0, le=_WEEK)
    """Seconds at most between two application retries."""
    multiplier: float | None = Field(None, ge=1, le=10)
    """Growth of the delay from one retry to the next."""
    timeout: float | None = Field(None, gt=0)
    """Seconds of running time, summed over runs, waiting for people excluded."""
    step_timeout: float | None = Field(None, gt=0)
    """Seconds of one step."""
    call_timeout: float | None = Field(None, gt=0)
    """Seconds of one call to the outside."""
    connect_timeout: float | None = Field(None, gt=0)
    """Seconds until a connection is there, or a tool has started."""
    idle_timeout: float | None = Field(None, gt=0)
    """Seconds between two pieces of an answer."""
    on_lost: Literal["retry", "resume", "fail", "new_job"] | None = None
    """What follows when a worker dies with a run."""

    @model_validator(mode="after")
    def _delays_fit(self) -> Self:
        if self.base_delay and self.max_delay and self.base_delay > self.max_delay:
            raise ValueError(f"base_delay is over max_delay {self.max_delay:g}; give a smaller one")
        return self

    def limits(self) -> dict[str, Any]:
        """Return the limits that are set."""
        return self.model_dump(include=set(LimitSettings.model_fields), exclude_none=True)


class TypeSettings(LimitSettings):
    """Limits of one job type; unset keys keep the built-in ones."""


class AgentSettings(LimitSettings):
    """A program that `run_agent` can drive, and the limits of its jobs."""

    command: tuple[str, ...] = Field(min_length=1)
    """Program and arguments; `{python}` is this interpreter."""
    env: dict[str, str] = {}
    """Variables set for it."""
    pass_env: tuple[str, ...] = ()
    """Names of variables it may inherit besides the allowlist."""
    network: bool = False
    """Whether it may use the network; a profile with `network = false` closes it again."""


class SandboxSettings(Section):
    """Confinement of agents, commands of profiles, and tools."""

    mode: Literal["auto", "bwrap", "landlock", "off"] = "auto"
    """`auto`: the strongest mode that holds here, and no run where none does."""
    read_only: tuple[UserPath, ...] = ()
    """Files and folders that the programs may read besides the system's."""
    memory_mb: int = Field(8192, ge=64, le=1 << 22)
    """Megabytes of memory of one run's processes together."""
    processes: int = Field(1024, ge=8, le=1 << 20)
    """Processes and threads of one run."""
    file_size_mb: int = Field(4096, ge=1, le=1 << 22)
    """Megabytes of one file."""
    first_uid: int = Field(200_000, ge=1000, le=4_000_000_000)
    """First user id of the range from which a worker of root's takes one for each run."""
    uids: int = Field(1024, ge=1, le=100_000)
    """Length of that range."""


class SetupSettings(Section):
    """A command of a profile that prepares a fresh clone."""

    name: str = Field(min_length=1)
    command: tuple[str, ...] = Field(min_length=1)
    timeout: float = Field(600, gt=0)


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
    timezone: Zone | None = None
    """Where they live; None: as questions have it."""
    quiet: Hours | None = None
    """When they are not reminded, by their own clock; None: as questions have it."""


class NotificationSettings(Section):
    """Who is told what happens to jobs, and how hard it is tried."""

    targets: tuple[str, ...] = ()
    """Targets of every request that names none: `log`, `webhook:NAME`, …"""
    fallback: str = "log"
    """Where undeliverable messages and unheard dead letters go; `none`: to the process's log."""
    log_file: UserPath | None = None
    """File of the channel `log`; None: `notifications.jsonl` in the data directory."""
    max_attempts: int = Field(10, ge=1, le=100)
    """Tries until a delivery is dead."""
    base_delay: float = Field(1, gt=0, le=3600)
    """Seconds before the second try, before jitter; doubled with each."""
    max_delay: float = Field(600, gt=0, le=86_400)
    """Seconds at most between two tries."""
    timeout: float = Field(10, gt=0, le=300)
    """Seconds that one call to a channel may take."""
    lease: float = Field(60, gt=0, le=3600)
    """Seconds after which a delivery is taken from a process that does not finish it."""
    in_flight: int = Field(16, ge=1, le=200)
    """Deliveries of one channel that a process sends at the same time."""
    per_target: int = Field(4, ge=1, le=100)
    """Of these, those to one target."""
    poll: float = Field(5, gt=0, le=60)
    """Seconds between looks when no notification comes."""

    @model_validator(mode="after")
    def _calls_fit_the_lease(self) -> Self:
        if self.timeout * 4 > self.lease:  # looking twice, sending, and time to spare
            raise ValueError("lease must be at least four times timeout")
        return self


class LogSettings(Section):
    """What the processes say."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    file: UserPath | None = None
    """Also write to this file; when it cannot be written, one line says so and work goes on."""
