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
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

from platformdirs import user_config_dir, user_data_dir
from pydantic import BaseModel, Field, SecretStr, ValidationError, field_validator, model_validator
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
)

from draftsman.errors import ConfigError
from draftsman.settings import env_variables
from draftsman.settings.chat import SlackSettings, TrelloSettings
from draftsman.settings.config_errors import explain, unparsable
from draftsman.settings.dashboard import DashboardSettings
from draftsman.settings.outbound import (
    CredentialSettings,
    HttpSettings,
    LlmSettings,
    SecretSettings,
    ToolSettings,
    WebhookSettings,
)
from draftsman.settings.quotas import QuotaSettings
from draftsman.settings.tables import (
    AgentSettings,
    CommandSettings,
    DatabaseSettings,
    EmbeddedSettings,
    FixSettings,
    LimitSettings,
    LogSettings,
    Months,
    NotificationSettings,
    PersonSettings,
    ProfileSettings,
    QuestionSettings,
    RetentionSettings,
    Role,
    SandboxSettings,
    Section,
    SetupSettings,
    SweepSettings,
    TypeSettings,
    UserPath,
    WorkerSettings,
)

__all__ = [
    "AgentSettings",
    "CommandSettings",
    "CredentialSettings",
    "DashboardSettings",
    "DatabaseSettings",
    "EmbeddedSettings",
    "FixSettings",
    "HttpSettings",
    "LimitSettings",
    "LlmSettings",
    "LogSettings",
    "Months",
    "NotificationSettings",
    "PersonSettings",
    "ProfileSettings",
    "QuestionSettings",
    "QuotaSettings",
    "RetentionSettings",
    "Role",
    "SandboxSettings",
    "SecretSettings",
    "Section",
    "Settings",
    "SetupSettings",
    "SlackSettings",
    "SweepSettings",
    "ToolSettings",
    "TrelloSettings",
    "TypeSettings",
    "WebhookSettings",
    "WorkerSettings",
    "config_path",
    "load",
    "unread_variables",
]

SYSTEM_CONFIG = Path("/etc/draftsman/draftsman.toml")


def _tidy() -> dict[str, AgentSettings]:
    return {"tidy": AgentSettings(command=("{python}", "-m", "draftsman.agents.tidy"))}


class Settings(BaseSettings):
    """All of the configuration. Build it with `load`."""

    model_config = SettingsConfigDict(
        defer_build=True,
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
    database: DatabaseSettings = Field(default_factory=DatabaseSettings)
    embedded: EmbeddedSettings = Field(default_factory=EmbeddedSettings)
    worker: WorkerSettings = Field(default_factory=WorkerSettings)
    sweeps: SweepSettings = Field(default_factory=SweepSettings)
    retention: RetentionSettings = Field(default_factory=RetentionSettings)
    questions: QuestionSettings = Field(default_factory=QuestionSettings)
    quotas: QuotaSettings = Field(default_factory=QuotaSettings)
    notifications: NotificationSettings = Field(default_factory=NotificationSettings)
    webhooks: dict[str, WebhookSettings] = {}
    slack: SlackSettings | None = None
    trello: TrelloSettings | None = None
    dashboard: DashboardSettings = Field(default_factory=DashboardSettings)
    log: LogSettings = Field(default_factory=LogSettings)
    handlers: dict[str, str] = {}
    types: dict[str, TypeSettings] = {}
    agents: dict[str, AgentSettings] = Field(default_factory=_tidy)
    default_agent: str | None = Field(None, min_length=1)
    """The agent of requests that name none, where the profile of their repository has none."""
    tools: dict[str, ToolSettings] = {}
    llm: dict[str, LlmSettings] = {}
    http: HttpSettings = Field(default_factory=HttpSettings)
    sandbox: SandboxSettings = Field(default_factory=SandboxSettings)
    profile: ProfileSettings = Field(default_factory=ProfileSettings)
    profiles: dict[str, ProfileSettings] = {}
    people: dict[str, PersonSettings] = {}
    groups: dict[str, tuple[str, ...]] = {}

    @property
    def agent_by_default(self) -> str | None:
        """Name of the default agent, else of the only one; None where a request has to name one."""
        only = next(iter(self.agents)) if len(self.agents) == 1 else None
        return self.default_agent or only

    @property
    def agent_names(self) -> list[str]:
        """Names of the agents, the default first."""
        return sorted(self.agents, key=lambda name: (name != self.default_agent, name))

    def profile_of(self, repo: str) -> ProfileSettings:
        """Return the configured profile of a repository, by its name: `owner/name`."""
        return self.profiles.get(repo, self.profile)

    @field_validator("database_url", "listen_url")
    @classmethod
    def _is_a_url(cls, value: SecretStr | None) -> SecretStr | None:
        secret = value.get_secret_value() if value else ""
        if secret and not secret.startswith(("postgresql://", "postgres://")) and "=" not in secret:
            raise ValueError("give a URL: postgresql://user@host/database")
        if "://" in secret and not _is_encoded(secret):
            raise ValueError("a password in a URL is percent-encoded: % as %25, @ as %40, / as %2F")
        return value

    @model_validator(mode="after")
    def _names_hold_together(self) -> Self:
        for group, members in self.groups.items():
            if unknown := [name for name in members if name not in self.people]:
                raise ValueError(f"groups.{group} names {unknown[0]!r}, who is not in people")
        wanted = self.questions.escalate_to
        if wanted is not None and wanted not in self.groups and wanted not in self.people:
            raise ValueError(f"questions.escalate_to names {wanted!r}: no group, and no person")
        for channel in ("login", "slack", "trello"):
            owners: dict[str, str] = {}
            for name, person in self.people.items():
                if (known := getattr(person, channel)) is None:
                    continue
                if (other := owners.setdefault(known, name)) != name:
                    raise ValueError(f"people.{other} and people.{name} share {channel} {known!r}")
        if "tidy" not in self.agents:
            object.__setattr__(self, "agents", {**_tidy(), **self.agents})
        if self.default_agent is not None and self.default_agent not in self.agents:
            known = ", ".join(sorted(self.agents))
            raise ValueError(f"default_agent names {self.default_agent!r}; agents are: {known}")
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
        found = Settings(**data)
    except ValidationError as error:
        raise ConfigError(explain(error, path, Settings)) from None
    except SettingsError as error:
        raise ConfigError(unparsable(error)) from None
    env_variables.refuse(unread_variables(found), os.environ)
    return found


def unread_variables(settings: Settings) -> list[env_variables.UnknownVariable]:
    """Return the `DRAFTSMAN_*` variables of this process that nothing reads."""
    named = {name for agent in settings.agents.values() for name in agent.pass_env}
    named |= set(_secret_variables(settings))
    return env_variables.unread(os.environ, Settings, frozenset(named))


def _secret_variables(value: object) -> Iterator[str]:
    """Yield the names of the variables that hold secrets, however deep they are named."""
    if isinstance(value, SecretSettings):
        if value.env is not None:
            yield value.env
    elif isinstance(value, BaseModel):
        for _, inner in value:
            yield from _secret_variables(inner)
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _secret_variables(inner)


def _is_encoded(url: str) -> bool:
    """Return whether what stands before the host, and all else, is percent-encoded."""
    place = url.partition("://")[2].partition("?")[0]
    authority = re.split(r"[/#]", place, maxsplit=1)[0]
    if re.search(r"%(?![0-9A-Fa-f]{2})|\s", url) is not None:
        return False
    return authority.count("@") == place.count("@") <= 1


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
