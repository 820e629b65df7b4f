"""Configuration with its defaults.

Order of precedence: arguments, then `DRAFTSMAN_*` in the environment (`__` between levels:
`DRAFTSMAN_WORKER__SLOTS=4`), then one `draftsman.toml`, then the defaults below. The file is
`--config`, `$DRAFTSMAN_CONFIG`, the user's, or `/etc/draftsman/draftsman.toml`: never one in the
current directory, because a cloned repository must not bring `[handlers]`.
`config/draftsman.toml` documents every key; `tests/docs/config_file.py` writes it from the models:
their docstrings, defaults, bounds and examples. `basic_settings` reads the few settings that most
commands need without these models.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Self

from pydantic import (
    BaseModel,
    Field,
    PrivateAttr,
    SecretStr,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
)

from draftsman.basic_settings import (
    FALLBACK_URL,
    config_path,
    default_data_dir,
    fallback_url,
    read_url,
)
from draftsman.errors import ConfigError, OptionHint
from draftsman.settings import channel_tables, env_variables
from draftsman.settings.agents import TIDY, AgentSettings, AnyAgent, check_agents, with_known_agents
from draftsman.settings.attention import (
    HolidaySettings,
    LadderSettings,
    OnCallSettings,
    check_attention,
)
from draftsman.settings.budgets import BudgetsSettings
from draftsman.settings.config_errors import explain, unparsable
from draftsman.settings.dashboard import DashboardSettings
from draftsman.settings.database import DatabaseSettings, EmbeddedSettings
from draftsman.settings.evidence import EvidenceSettings
from draftsman.settings.forges import AnyForge, ForgeSettings, check_forges
from draftsman.settings.git import GitSettings
from draftsman.settings.http import HttpSettings
from draftsman.settings.job_types import TypeSettings
from draftsman.settings.limits import UsageSettings
from draftsman.settings.llm import GatewaySettings, LlmSettings, PriceSettings
from draftsman.settings.log import LogSettings
from draftsman.settings.network import NetworkSettings, check_names, check_networks, resolve_groups
from draftsman.settings.notifications import NotificationSettings
from draftsman.settings.people import PersonSettings, check_people
from draftsman.settings.policies import CodeOwner, PolicySettings
from draftsman.settings.profiles import ProfileSettings
from draftsman.settings.questions import QuestionSettings, RuleSettings
from draftsman.settings.quotas import QuotaSettings
from draftsman.settings.retention import RetentionSettings
from draftsman.settings.sandbox import SandboxSettings
from draftsman.settings.secret import SecretSettings
from draftsman.settings.section import UserPath
from draftsman.settings.tools import ToolSettings
from draftsman.settings.tracing import TracingSettings
from draftsman.settings.webhooks import WebhookSettings
from draftsman.settings.workers import SweepSettings, WorkerSettings


def _tidy() -> dict[str, AgentSettings]:
    return {"tidy": AgentSettings.model_construct(**TIDY)}


class Settings(BaseSettings):
    """The complete configuration; `load` creates it.

    Defaults are constructed without validation, which would build a validator for each section.
    """

    model_config = SettingsConfigDict(
        defer_build=True,
        env_prefix="DRAFTSMAN_",
        env_nested_delimiter="__",
        env_ignore_empty=True,
        extra="forbid",
        frozen=True,
    )

    database_url: SecretStr | None = Field(
        None, examples=["postgresql://draftsman@db.example.org/draftsman"]
    )
    """PostgreSQL 15 or later. Unset: the database of the variable DATABASE_URL; without that
    variable draftsman starts an embedded server, for this user only."""
    listen_url: SecretStr | None = Field(
        None, examples=["postgresql://draftsman@db.example.org:5432/draftsman"]
    )
    """The server itself if database_url is a transaction pooler, for the sessions of workers and
    bots that listen, hold a lock or prepare statements, and for migrations. Unset: database_url."""
    data_dir: UserPath = Field(
        default_factory=lambda: default_data_dir(), examples=["/var/lib/draftsman"]
    )
    """Directory for the embedded database, mirrors of repositories and runs. This is the default
    for root without XDG_DATA_HOME; else it is the user's data directory (~/.local/share/draftsman).
    The embedded database does not accept a path with quotes, $, ` or a backslash."""
    default_agent: str | None = Field(None, min_length=1, examples=["tidy"])
    """The agent of requests without an agent, if the profile of their repository has none either.
    Unset: the only agent; if [agents] has several, a request must name its agent, and that of a
    ticket gets tidy."""
    database: DatabaseSettings = Field(default_factory=DatabaseSettings.model_construct)
    embedded: EmbeddedSettings = Field(default_factory=EmbeddedSettings.model_construct)
    worker: WorkerSettings = Field(default_factory=WorkerSettings.model_construct)
    sweeps: SweepSettings = Field(default_factory=SweepSettings.model_construct)
    limits: UsageSettings = Field(default_factory=UsageSettings.model_construct)
    budgets: BudgetsSettings = Field(default_factory=BudgetsSettings.model_construct)
    retention: RetentionSettings = Field(default_factory=RetentionSettings.model_construct)
    questions: QuestionSettings = Field(default_factory=QuestionSettings.model_construct)
    ladders: dict[str, LadderSettings] = Field(
        {},
        examples=[
            {
                "default": {
                    "steps": [
                        {"notify": ["@asker"]},
                        {"notify": ["@owners", "@oncall"], "after": 900},
                        {"notify": ["slack:C012ABCDEF"], "after": 1800},
                        {
                            "notify": ["maintainers"],
                            "after": 3600,
                            "when_away": "wait",
                            "escalate": True,
                        },
                    ]
                },
                "urgent": {"steps": [{"notify": ["@oncall", "pager:ops"]}]},
            }
        ],
    )
    oncall: dict[str, OnCallSettings] = Field(
        {},
        examples=[
            {
                "default": {},
                "backend": {"file": "/etc/draftsman/oncall.ics"},
                "platform": {"url": {"env": "ONCALL_CALENDAR_URL"}},
            }
        ],
    )
    holidays: dict[str, HolidaySettings] = Field({}, examples=[{"berlin": {}}])
    rules: RuleSettings = Field(default_factory=RuleSettings.model_construct)
    quotas: QuotaSettings = Field(default_factory=QuotaSettings.model_construct)
    dashboard: DashboardSettings = Field(default_factory=DashboardSettings.model_construct)
    log: LogSettings = Field(default_factory=LogSettings.model_construct)
    tracing: TracingSettings = Field(default_factory=TracingSettings.model_construct)
    handlers: dict[str, str] = Field({}, examples=[{"report:weekly": "my_reports.weekly:handle"}])
    """Your own job types (docs/handlers.md): the type and the function that runs it, as
    `package.module:function`."""
    types: dict[str, TypeSettings] = Field({}, examples=[{"report:weekly": {}}])
    sandbox: SandboxSettings = Field(default_factory=SandboxSettings.model_construct)
    evidence: EvidenceSettings = Field(default_factory=EvidenceSettings.model_construct)
    policy: PolicySettings = Field(default_factory=PolicySettings.model_construct)
    git: GitSettings = Field(default_factory=GitSettings.model_construct)
    codeowners: dict[CodeOwner, str] = Field(
        {}, examples=[{"@acme/database": "maintainers", "anna@example.org": "anna"}]
    )
    """Owners in CODEOWNERS, @organization/team, @login or an e-mail address, and the person or
    group of each."""
    agents: dict[str, AnyAgent] = Field(
        default_factory=_tidy,
        examples=[
            {
                "tidy": {"timeout": 3600.0, "call_timeout": 300.0, "on_lost": "new_job"},
                "claude": {"kind": "claude"},
                "fixer": {"kind": "plain", "command": ["/opt/fixer/bin/fix"]},
            }
        ],
    )
    tools: dict[str, ToolSettings] = Field(
        {},
        examples=[
            {"count_words": {"call_timeout": 30.0, "connect_timeout": 10.0, "on_lost": "fail"}}
        ],
    )
    llm: dict[str, LlmSettings] = Field({}, examples=[{"writer": {}}])
    forges: dict[str, AnyForge] = Field(
        {},
        examples=[
            {
                "gitlab": {"kind": "gitlab"},
                "github": {
                    "kind": "github",
                    "app_id": "123456",
                    "private_key": {"file": "/etc/draftsman/github-app.pem"},
                    "installation": 7654321,
                },
            }
        ],
    )
    gateways: dict[str, GatewaySettings] = Field({}, examples=[{"anthropic": {}}])
    prices: dict[str, PriceSettings] = Field({}, examples=[{"claude-sonnet-*": {}}])
    webhooks: dict[str, WebhookSettings] = Field({}, examples=[{"ops": {}}])
    networks: dict[str, NetworkSettings] = Field({}, examples=[{"mirrors": {}}])
    secrets: dict[str, SecretSettings] = Field({}, examples=[{"stripe": {"env": "STRIPE_KEY"}}])
    """Secrets that runs of your own job types may read by their names (docs/own-jobs.md); only
    workers need them."""
    http: HttpSettings = Field(default_factory=HttpSettings.model_construct)
    profile: ProfileSettings = Field(default_factory=ProfileSettings.model_construct)
    """Validation and fix commands. This is the profile of every repository without its own profile,
    here or in `draftsman repos` (docs/repos.md), which takes precedence if it has validation
    commands. A list given here replaces the complete default list."""
    profiles: dict[str, ProfileSettings] = Field(
        {},
        examples=[
            {
                "octocat/hello": {
                    "validation_commands": [
                        {"name": "tests", "command": ["make", "test"], "timeout": 900}
                    ],
                    "fix_commands": [{"name": "format", "command": ["make", "format"]}],
                }
            }
        ],
    )
    """The profile of a repository, by owner/name or host/owner/name."""
    notifications: NotificationSettings = Field(
        default_factory=NotificationSettings.model_construct
    )
    people: dict[str, PersonSettings] = Field({}, examples=[{"anna": {}}])
    groups: dict[str, tuple[str, ...]] = Field({}, examples=[{"maintainers": ["anna"]}])
    """Groups of people, for approvals and escalation."""
    _uses_fallback_url: bool = PrivateAttr(False)

    @property
    def uses_fallback_url(self) -> bool:
        """Whether `database_url` is that of the variable `DATABASE_URL`."""
        return self._uses_fallback_url

    @property
    def agent_by_default(self) -> str | None:
        """Name of the default agent, else of the only agent; None if a request must specify it."""
        only = next(iter(self.agents)) if len(self.agents) == 1 else None
        return self.default_agent or only

    @property
    def only_tidies(self) -> bool:
        """Whether the only agent is the included one, which ignores instructions."""
        return [agent.command for agent in self.agents.values()] == [TIDY["command"]]

    @property
    def read_forges(self) -> dict[str, ForgeSettings]:
        """The forges whose events are received."""
        forges = self.forges.items()
        return {name: forge for name, forge in forges if forge.usable and forge.events is not None}

    @property
    def agent_names(self) -> list[str]:
        """Names of the agents, the default agent first."""
        return sorted(self.agents, key=lambda name: (name != self.default_agent, name))

    @property
    def queue_names(self) -> set[str]:
        """Names of the queues of the worker and of limits, and that of requests without one."""
        return {"default", *self.worker.queues, *self.limits.queue} - {"*"}

    def profile_of(self, host: str, repo: str) -> tuple[str, ProfileSettings]:
        """Return table and profile of the repository `owner/name`; the table may be of any host."""
        known = {name.casefold(): name for name in self.profiles}
        name = known.get(f"{host}/{repo}".casefold(), known.get(repo.casefold(), ""))
        return name, self.profiles.get(name, self.profile)

    def resolve_network(self, network: bool | tuple[str, ...]) -> bool | tuple[str, ...]:
        """Return a network with the hosts of its groups; raises ValueError for an unknown group."""
        return resolve_groups(network, {name: item.hosts for name, item in self.networks.items()})

    @field_validator("agents", mode="before")
    @classmethod
    def _complete_known_agents(cls, value: Any) -> Any:
        return with_known_agents(value)

    @field_validator("database_url", "listen_url")
    @classmethod
    def _read_url(cls, value: SecretStr | None) -> SecretStr | None:
        return None if value is None else SecretStr(read_url(value.get_secret_value()))

    @model_validator(mode="after")
    def _check_references(self) -> Self:
        """Check the names by which tables refer to each other."""
        if "tidy" not in self.agents:
            object.__setattr__(self, "agents", {**_tidy(), **self.agents})
        check_people(self.people, self.groups)
        check_agents(self.agents, self.default_agent, self.gateways)
        check_attention(self)
        check_forges(self.forges)
        check_names("networks", self.networks)
        check_networks("agents", self.agents, self.networks)
        check_networks("tools", self.tools, self.networks)
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
        """Let the environment override the file, whose values `load` passes as arguments."""
        return (env_settings, init_settings)


def load(config: Path | None = None, *, database_url: str | None = None) -> Settings:
    """Load the configuration; `database_url` replaces its database.

    Raises ConfigError with the file or variable, the key, the value and the allowed values.
    """
    path = config_path(config)
    tables = _read(path) if path else {}
    model = settings_model(tables)
    try:
        settings = model(**tables)
    except ValidationError as error:
        raise ConfigError(explain(error, path, model, tables)) from None
    except SettingsError as error:
        raise ConfigError(unparsable(error)) from None
    if database_url is not None:
        settings = _with_url(settings, database_url)
    elif settings.database_url is None:
        settings = _with_fallback(settings)
    env_variables.refuse(unread_variables(settings), os.environ)
    return settings


def settings_model(tables: Mapping[str, Any] | None = None) -> type[Settings]:
    """Return the model for the tables of a file and the variables; None: for all tables."""
    variables = {name: value for name, value in os.environ.items() if _is_setting(name, value)}
    if tables is not None and not channel_tables.names_channels(tables, variables, Settings):
        return Settings
    return channel_tables.with_channels(Settings)


def _is_setting(name: str, value: str) -> bool:
    return bool(value) and name.upper().startswith(env_variables.PREFIX)


def _with_url(settings: Settings, url: str) -> Settings:
    """Return the settings with another database, whose sessions use the same URL."""
    try:
        own = SecretStr(read_url(url))
    except ValueError as error:
        raise ConfigError(f"the database URL: {error}") from None
    return settings.model_copy(update={"database_url": own, "listen_url": None})


def _with_fallback(settings: Settings) -> Settings:
    try:
        url = fallback_url()
    except ValueError as error:
        raise ConfigError(
            f"{FALLBACK_URL}: {error}; or set DRAFTSMAN_DATABASE_URL, or unset {FALLBACK_URL} to"
            " use the embedded database"
        ) from None
    if url is None:
        return settings
    settings = settings.model_copy(update={"database_url": SecretStr(url)})
    settings._uses_fallback_url = True
    return settings


def unread_variables(settings: Settings) -> list[env_variables.UnknownVariable]:
    """Return the unused `DRAFTSMAN_*` variables of this process."""
    used = {name for agent in settings.agents.values() for name in agent.pass_env}
    used |= set(_secret_variables(settings))
    return env_variables.unread(os.environ, type(settings), frozenset(used))


def _secret_variables(value: object) -> Iterator[str]:
    """Yield the names of the variables of secrets, recursively."""
    if isinstance(value, SecretSettings):
        if value.env is not None:
            yield value.env
    elif isinstance(value, BaseModel):
        for _, inner in value:
            yield from _secret_variables(inner)
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _secret_variables(inner)


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(
            f"{path}: {error.strerror}", hint=OptionHint("config", lead="give a readable file with")
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: not valid TOML: {error}") from None
