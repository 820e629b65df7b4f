"""The tables of the configuration that say where calls to the outside may go, and as whom."""

from __future__ import annotations

import ipaddress
import re
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, JsonValue, field_validator, model_validator

from draftsman.field_errors import matching
from draftsman.settings.tables import LimitSettings, Section, UserPath

HOST = re.compile(r"([A-Za-z0-9_.-]+|\[[0-9A-Fa-f:.]+\])(?::(\d{1,5}))?\Z")
"""`host`, `host:port`, `[address]:port`."""
MOST_BODY = 25 * 1024 * 1024
"""Bytes that an artifact may have, which a long answer becomes."""


def web_address(value: str) -> str:
    """Return the URL of a place on the web; raises ValueError that says what one looks like."""
    try:
        parts = urlsplit(value)
        fine = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        fine = False
    if not fine or parts.username is not None or parts.query or parts.fragment:
        raise ValueError("give a URL: https://host/path, without user, query or fragment")
    return value


_Variable = Annotated[
    str,
    matching(
        r"[A-Za-z_][A-Za-z0-9_]*",
        "give the name of a variable such as SLACK_BOT_TOKEN, not what it holds",
    ),
]


def _url(value: str | None) -> str | None:
    return None if value is None else web_address(value)


class SecretSettings(Section):
    """A secret, by the name of the variable or the file that holds it; never the secret itself."""

    env: _Variable | None = None
    file: UserPath | None = None

    @model_validator(mode="before")
    @classmethod
    def _is_a_place(cls, data: Any) -> Any:
        if isinstance(data, str):
            raise ValueError('say where it is, { env = "NAME" } or { file = "PATH" }, not what')
        return data

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if (self.env is None) == (self.file is None):
            raise ValueError("give env, the name of a variable, or file, a path: one of them")
        return self


class CredentialSettings(Section):
    """A header that `http_request` may send to one origin."""

    origin: str
    """Scheme, host and port that it is for; it is sent nowhere else."""
    header: Annotated[str, matching(r"[A-Za-z0-9-]{1,100}", "allowed: letters, digits and -")] = (
        "Authorization"
    )
    prefix: str = ""
    """Text before the secret, such as `Bearer `."""
    secret: SecretSettings

    _origin = field_validator("origin")(_url)


class HttpSettings(Section):
    """Calls to the outside."""

    allow: tuple[str, ...] = ()
    """Networks, addresses and hosts, each with a port or not, that are not public and allowed."""
    proxy: str | None = None
    """URL of a proxy for every call; the variables of the environment are not read."""
    ca_file: UserPath | None = None
    """Certificates of authorities to trust besides the public ones."""
    max_body: int = Field(10 * 1024 * 1024, ge=1024, le=MOST_BODY)
    """Bytes of an answer at most, unpacked."""
    redirects: int = Field(5, ge=0, le=20)
    """How often `http_request` follows a redirect."""
    credentials: dict[str, CredentialSettings] = Field({})

    @field_validator("allow")
    @classmethod
    def _can_be_meant(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for entry in value:
            if not (_is_network(entry) or HOST.match(entry)):
                raise ValueError(
                    f"{entry!r} is no network, host or host:port; such as"
                    " 10.0.0.0/8, db.internal, localhost:8080, [::1]:8080"
                )
        return value

    _proxy = field_validator("proxy")(_url)


class LlmSettings(Section):
    """A model that `llm_generate` can ask."""

    provider: Literal["openai", "anthropic"]
    """Whose protocol the server speaks: `/chat/completions` or `/v1/messages`."""
    base_url: str | None = None
    """Unset: the provider's own. OpenAI's ends with `/v1`, Anthropic's does not."""
    model: str = Field(min_length=1, max_length=200)
    max_tokens: int = Field(4096, ge=1, le=1_000_000)
    """Tokens of an answer at most, where the job does not say."""
    key: SecretSettings | None = None
    """The API key; unset: none is sent, as for a server of one's own."""

    _base_url = field_validator("base_url")(_url)


class WebhookSettings(Section):
    """A receiver of signed HTTP: as a target of messages, and by name for `webhook_dispatch`."""

    url: str
    secret: SecretSettings
    """`whsec_…` or base64; several, with a line each, while the secret is being changed."""
    on: tuple[Literal["completed", "failed", "dead_letter", "canceled", "expired"], ...] = ()
    """Ends of any job that it is told, whoever asked for the job."""

    _is_a_url = field_validator("url")(_url)


class ToolSettings(LimitSettings):
    """A program that `execute_tool` can run, and its limits."""

    command: tuple[str, ...] = Field(min_length=1)
    """Program and arguments, never through a shell; `{python}` is this interpreter."""
    description: str = ""
    input: JsonValue = True
    """JSON Schema of what it reads, as JSON, on its standard input."""
    output: JsonValue = None
    """JSON Schema of what it prints, as JSON; unset: any text."""
    exits: dict[str, Literal["TRANSIENT_INFRA", "TRANSIENT_APP", "PERMANENT"]] = Field({})
    """What its exit codes mean; without a word, 1 is TRANSIENT_INFRA, and sysexits.h counts."""
    env: dict[str, str] = Field({})
    """Variables set for it."""
    pass_env: tuple[str, ...] = ()
    """Names of variables it may inherit besides the allowlist."""
    network: bool = Field(False)
    """Whether it may use the network."""

    @field_validator("input", "output")
    @classmethod
    def _is_a_schema(cls, value: Any) -> Any:
        if not (value is None or isinstance(value, dict | bool)):
            raise ValueError("give a JSON Schema: a table")
        return value

    @field_validator("exits")
    @classmethod
    def _are_codes(cls, value: dict[str, str]) -> dict[str, str]:
        for code in value:
            if not (code.isascii() and code.isdigit() and 1 <= int(code) <= 255):
                raise ValueError(f"{code!r} is no exit code; give 1 to 255")
        return value


def _is_network(entry: str) -> bool:
    try:
        ipaddress.ip_network(entry, strict=False)
    except ValueError:
        return False
    return True
