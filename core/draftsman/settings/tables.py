"""Tables of the configuration, with their defaults."""

from __future__ import annotations

from pathlib import Path
from string import Formatter
from typing import Annotated, Any, Final, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    field_validator,
    model_validator,
)

from draftsman.basic_settings import expand_user
from draftsman.field_errors import matching
from draftsman.settings.hours import Hours, LadderChoice, WorkingHours, Zone

Role = Literal["invoker", "responder", "approver", "operator"]


def _expanded(value: object) -> object:
    return expand_user(value) if isinstance(value, str) else value


UserPath = Annotated[Path, BeforeValidator(_expanded)]
"""A path in which `~` is the user's home."""
_WEEK = 86_400.0 * 7
KEY_PLACEHOLDERS = ("repo", "path", "type", "queue", "agent")
"""Values of a job that a concurrency key of its type may contain."""
_Count = Annotated[int, Field(ge=1, le=1200)]
_KeyPath = Annotated[
    str,
    Field(max_length=200),
    matching(
        r"(?!\.{0,2}/)[^*?\[\s]+",
        "must be a folder or a file from the top folder, without a pattern",
    ),
]
Months = Annotated[_Count | None, BeforeValidator(lambda v: None if v == "never" else v)]


class Section(BaseModel):
    """A table of the file: immutable, without unknown keys."""

    model_config = ConfigDict(defer_build=True, extra="forbid", frozen=True, allow_inf_nan=False)


class DatabaseSettings(Section):
    """Database connections."""

    pool_size: int = Field(5, ge=1, le=100)
    """Maximum connections of a process, besides its LISTEN connection."""
    connect_timeout: float = Field(10, gt=0, le=300)
    """Seconds to wait for a connection."""
    statement_timeout: float = Field(60, gt=0, le=3600)
    """Seconds after which the server cancels a statement."""


class EmbeddedSettings(Section):
    """The embedded server."""

    idle_timeout: float = Field(600, ge=0, le=86_400 * 7)
    """Seconds from its last connection to its stop; 0: it does not stop."""


STOP_SHARE: Final = 0.1
"""Part of a lease before whose end a run is stopped."""
STOP_MARGIN: Final = 10.0
"""Maximum seconds before the end of a lease at which a run is stopped."""


class WorkerSettings(Section):
    """Workers."""

    slots: int = Field(10, ge=1, le=1000)
    """Concurrent runs."""
    prefetch: int = Field(0, ge=0, le=1000)
    """Jobs claimed ahead of a free slot."""
    queues: tuple[str, ...] = ("default",)
    """Queues to claim from."""
    poll: float = Field(1.0, gt=0, le=60)
    """Seconds between polls without notifications."""
    heartbeat: float = Field(30, gt=0, le=300)
    """Seconds between heartbeats."""
    lease: float = Field(300, gt=0, le=3600)
    """Seconds without a heartbeat after which a run is lost."""
    drain: float = Field(45, ge=0, le=3600)
    """Seconds that a shutdown waits for runs to finish."""
    abort: float = Field(10, ge=0, le=600)
    """Seconds for aborted runs to save a checkpoint before they are killed."""

    @model_validator(mode="after")
    def _check_heartbeat(self) -> Self:
        if self.heartbeat * 2 >= self.lease:
            raise ValueError("heartbeat must be less than half of lease")
        return self

    @property
    def stop_after(self) -> float:
        """Seconds after its last confirmed heartbeat at which a run is stopped.

        The rest of the lease is for its handler to end, and for its agent to be killed.
        """
        margin: float = min(self.lease * STOP_SHARE, STOP_MARGIN)
        return self.lease - margin


class SweepSettings(Section):
    """Periodic maintenance by the leader."""

    interval: float = Field(60, gt=0, le=3600)
    """Seconds between sweeps."""
    lease: float = Field(30, ge=1, le=600)
    """Seconds of a leader's lease, which it renews at half of it."""
    limit: int = Field(100, ge=1, le=10_000)
    """Maximum rows changed by a sweep."""
    deregister_after: float = Field(86_400, ge=60)
    """Seconds after which the row of a dead worker is deleted."""


class RetentionSettings(Section):
    """Retention of old data in the database."""

    events: Months = None
    """Months after which events are archived; None (`never`): they are kept."""
    logs: Months = None
    """Months after the end of a job before its logs are deleted; None: they are kept."""
    archive_dir: UserPath | None = None
    """Directory of the archives; None: `archive` in the data directory."""


class QuestionSettings(Section):
    """Defaults of questions."""

    expires_in: float | None = Field(86_400, gt=0)
    """Seconds until a question expires; 0 in TOML: never."""
    self_approval: bool = False
    """Whether the requester of a job may approve it."""
    ask_grace: float = Field(20, ge=0, le=300)
    """Maximum seconds that an agent is kept running for the answer to its question; 0: never."""
    escalate_to: str | None = Field(None, min_length=1)
    """Default group or person to escalate questions to."""
    quiet_hours: Hours | None = None
    """Default quiet hours, without interruptions; None: no quiet hours."""
    working_hours: WorkingHours | None = None
    """Default working hours; None: at any time."""
    holidays: str | None = Field(None, min_length=1)
    """Default table of `[holidays]`; None: no holidays."""
    timezone: Zone = "UTC"
    """Default time zone of people."""
    ladders: LadderChoice = Field({})
    """Ladder of each kind of question, `input`, `approval` or `critical`."""

    @model_validator(mode="before")
    @classmethod
    def _zero_is_never(cls, data: Any) -> Any:
        if isinstance(data, dict) and data.get("expires_in") in (0, "0"):
            return {**data, "expires_in": None}
        return data


class RuleSettings(Section):
    """When a permission rule is proposed, and for how long it allows commands."""

    propose_after: int = Field(5, ge=0, le=1000)
    """Equal decisions of people before a rule is proposed; 0: never, 1 counts as 2."""
    expires_in: float = Field(2_592_000, gt=0, le=366 * 86_400)
    """Seconds after which a rule expires, unless the person who ratifies it chooses others."""
    notify: str | None = None
    """Target of a message about each proposed rule: `slack:C012ABCDEF`; None: none is sent."""


class LimitSettings(Section):
    """Limits of a job type, an agent or a tool; unset limits are inherited."""

    max_attempts: int | None = Field(None, ge=0, le=100)
    """Retries after infrastructure failures and lost runs."""
    max_retries: int | None = Field(None, ge=0, le=100)
    """Retries after application failures."""
    base_delay: float | None = Field(None, gt=0, le=_WEEK)
    """Seconds before the first application retry, before jitter."""
    max_delay: float | None = Field(None, gt=0, le=_WEEK)
    """Maximum seconds between two application retries."""
    multiplier: float | None = Field(None, ge=1, le=10)
    """Growth factor of the delay between retries."""
    timeout: float | None = Field(None, gt=0)
    """Seconds of running time of all runs, without waiting for people."""
    step_timeout: float | None = Field(None, gt=0)
    """Timeout of a step, in seconds."""
    call_timeout: float | None = Field(None, gt=0)
    """Timeout of an outbound call, in seconds."""
    connect_timeout: float | None = Field(None, gt=0)
    """Timeout of a connection, or of the start of a tool, in seconds."""
    idle_timeout: float | None = Field(None, gt=0)
    """Timeout between two chunks of a response, in seconds."""
    on_lost: Literal["retry", "resume", "fail", "new_job"] | None = None
    """Policy for a job whose worker died during a run."""

    @model_validator(mode="after")
    def _check_delays(self) -> Self:
        if self.base_delay and self.max_delay and self.base_delay > self.max_delay:
            raise ValueError(f"base_delay must not be more than max_delay, {self.max_delay:g}")
        return self

    def limits(self) -> dict[str, Any]:
        """Return the limits that are set."""
        return self.model_dump(include=set(LimitSettings.model_fields), exclude_none=True)


class TypeSettings(LimitSettings):
    """Limits of a job type; unset limits are the built-in limits."""

    concurrency_key: str | None = Field(None, min_length=1, max_length=200)
    """Concurrency key of jobs whose request has none; `{repo}` is the repository of the job."""
    key_paths: Annotated[tuple[_KeyPath, ...], Field(max_length=1000)] = ()
    """Folders and files: `{path}` of the key is the first of them that the request names."""
    unhandled: Literal["wait", "fail"] = "wait"
    """What happens to a job while no live worker handles its type."""

    @field_validator("concurrency_key")
    @classmethod
    def _check_placeholders(cls, value: str | None) -> str | None:
        for _, name, spec, conversion in Formatter().parse(value or ""):
            if name is not None and (name not in KEY_PLACEHOLDERS or spec or conversion):
                allowed = ", ".join(f"{{{item}}}" for item in KEY_PLACEHOLDERS)
                raise ValueError(f"unknown placeholder {{{name}}}; allowed: {allowed}")
        return value

    @model_validator(mode="after")
    def _check_paths(self) -> Self:
        if ("{path}" in (self.concurrency_key or "")) != bool(self.key_paths):
            raise ValueError("concurrency_key with {path}, and key_paths, need each other")
        return self


class SandboxSettings(Section):
    """Sandbox of agents, commands of profiles, and tools."""

    mode: Literal["auto", "bwrap", "landlock", "user", "container", "off"] = "auto"
    """`auto`: bwrap, else landlock; without both, runs do not start."""
    image: str | None = Field(None, min_length=1, pattern=r"^[^-\s]\S*$")
    """Image of the mode `container`, which is on this machine already."""
    engine: Literal["podman", "docker"] | None = None
    """Engine of the mode `container`; None: the first that is installed."""
    read_only: tuple[UserPath, ...] = ()
    """Additional readable files and directories."""
    memory_mb: int = Field(8192, ge=64, le=1 << 22)
    """Memory of all processes of a run, in megabytes."""
    processes: int = Field(1024, ge=8, le=1 << 20)
    """Processes and threads of a run."""
    file_size_mb: int = Field(4096, ge=1, le=1 << 22)
    """Size of a file, in megabytes."""
    first_uid: int = Field(200_000, ge=1000, le=4_000_000_000)
    """First user id of the range that a worker running as root uses for its runs."""
    uid_count: int = Field(1024, ge=1, le=100_000)
    """Size of the range of user ids."""

    @model_validator(mode="after")
    def _check_image(self) -> Self:
        if self.mode == "container" and self.image is None:
            raise ValueError('mode = "container" needs an image: set [sandbox] image')
        return self


class SetupSettings(Section):
    """A command of a profile that prepares a new clone."""

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
    """`safe`: for safe fixes and all fixes; `all`: for all fixes only."""
    timeout: float = Field(300, gt=0)


def _ruff_checks() -> tuple[CommandSettings, ...]:
    return (
        CommandSettings.model_construct(
            name="lint", command=("{python}", "-P", "-m", "ruff", "check", ".")
        ),
        CommandSettings.model_construct(
            name="format",
            command=("{python}", "-P", "-m", "ruff", "format", "--check", "."),
            required=False,
        ),
    )


def _ruff_fixes() -> tuple[FixSettings, ...]:
    fix = ("{python}", "-P", "-m", "ruff", "check", "--fix", "--exit-zero", ".")
    return (
        FixSettings.model_construct(name="lint", command=fix),
        FixSettings.model_construct(
            name="format", command=("{python}", "-P", "-m", "ruff", "format", ".")
        ),
        FixSettings.model_construct(
            name="unsafe", command=(*fix[:-1], "--unsafe-fixes", "."), level="all"
        ),
    )


class ProfileSettings(Section):
    """Validation and fix commands of a repository."""

    validation_commands: tuple[CommandSettings, ...] = Field(default_factory=_ruff_checks)
    fix_commands: tuple[FixSettings, ...] = Field(default_factory=_ruff_fixes)


_ForgeLogin = Annotated[
    str,
    matching(
        r"[A-Za-z0-9_-]+:[A-Za-z0-9][A-Za-z0-9._-]{0,99}",
        "must be the name of a forge and a login, such as github:anna",
    ),
    AfterValidator(str.lower),
]
_PagerUser = Annotated[
    str,
    matching(
        r"[A-Za-z0-9_-]+:[^\s:]{1,254}",
        "must be the name of a pager and a user id or an e-mail address, such as ops:PLH1HKV",
    ),
    AfterValidator(str.lower),
]
_PagerUsers = Annotated[
    tuple[_PagerUser, ...],
    BeforeValidator(lambda value: (value,) if isinstance(value, str) else value or ()),
    AfterValidator(lambda value: tuple(dict.fromkeys(value))),
]


class PersonSettings(Section):
    """A person, with accounts and roles."""

    login: str | None = None
    """Login on this machine, or the database role on a remote server."""
    slack: str | None = None
    trello: str | None = None
    forge: _ForgeLogin | None = None
    """Table of the forge, and login there: `github:anna`."""
    pager: _PagerUsers = ()
    """Tables of pagers, each with a user id or e-mail address there: `ops:PLH1HKV`."""
    roles: tuple[Role, ...] = ()
    timezone: Zone | None = None
    """Time zone; None: as in `[questions]`."""
    quiet_hours: Hours | None = None
    """Quiet hours in that time zone, without interruptions; None: as in `[questions]`."""
    working_hours: WorkingHours | None = None
    """Working hours in that time zone; `none`: at any time; None: as in `[questions]`."""
    holidays: str | None = Field(None, min_length=1)
    """Table of `[holidays]`; `none`: no holidays; None: as in `[questions]`."""


class NotificationSettings(Section):
    """Notifications about jobs, and their delivery."""

    targets: tuple[str, ...] = ()
    """Default targets of a request: `log`, `webhook:NAME`, …"""
    fallback: str = "log"
    """Target of undeliverable messages, and of dead letters without a target; `none`: log only."""
    log_file: UserPath | None = None
    """File of the channel `log`; None: `notifications.jsonl` in the data directory."""
    max_attempts: int = Field(10, ge=1, le=100)
    """Attempts before a delivery is dead."""
    base_delay: float = Field(1, gt=0, le=3600)
    """Seconds before the second attempt, before jitter; doubled with each."""
    max_delay: float = Field(600, gt=0, le=86_400)
    """Maximum seconds between two attempts."""
    timeout: float = Field(10, gt=0, le=300)
    """Timeout of a call to a channel, in seconds."""
    lease: float = Field(60, gt=0, le=3600)
    """Seconds after which an unfinished delivery is taken over from its process."""
    in_flight: int = Field(16, ge=1, le=200)
    """Concurrent deliveries of a process per channel."""
    per_target: int = Field(4, ge=1, le=100)
    """Concurrent deliveries of a process per target."""
    poll: float = Field(5, gt=0, le=60)
    """Seconds between polls without notifications."""

    @model_validator(mode="after")
    def _check_lease(self) -> Self:
        if self.timeout * 4 > self.lease:  # two searches, a send, and a reserve
            raise ValueError("lease must be at least four times timeout")
        return self


class LogSettings(Section):
    """Logging."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    file: UserPath | None = None
    """Additional log file; an unwritable file causes a warning only."""
