"""Settings of outbound calls: HTTP, secrets, models, webhooks and tools."""

from __future__ import annotations

import datetime
import ipaddress
import re
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, JsonValue, field_validator, model_validator

from draftsman.field_errors import matching
from draftsman.settings.network import MAX_HOSTS, HostEntry, Network
from draftsman.settings.tables import LimitSettings, Section, UserPath

HOST = re.compile(r"([A-Za-z0-9_.-]+|\[[0-9A-Fa-f:.]+\])(?::(\d{1,5}))?\Z")
"""`host`, `host:port`, `[address]:port`."""
MAX_BODY = 25 * 1024 * 1024
"""Maximum size of an artifact, in which a long response is stored."""


def web_address(value: str) -> str:
    """Validate an HTTP URL without user, query and fragment; raises ValueError."""
    try:
        parts = urlsplit(value)
        valid = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        valid = False
    if not valid or parts.username is not None or parts.query or parts.fragment:
        raise ValueError("must be a URL without user, query or fragment: https://host/path")
    return value


_Variable = Annotated[
    str,
    matching(
        r"[A-Za-z_][A-Za-z0-9_]*",
        "must be the name of a variable such as SLACK_BOT_TOKEN, not its value",
    ),
]


def _url(value: str | None) -> str | None:
    return None if value is None else web_address(value)


class SecretSettings(Section):
    """A reference to a secret in an environment variable or a file."""

    env: _Variable | None = None
    file: UserPath | None = None

    @model_validator(mode="before")
    @classmethod
    def _refuse_value(cls, data: Any) -> Any:
        if isinstance(data, str):
            raise ValueError('must be a reference, { env = "NAME" } or { file = "PATH" }')
        return data

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if (self.env is None) == (self.file is None):
            raise ValueError("specify either env, the name of a variable, or file, a path")
        return self


class CredentialSettings(Section):
    """A header that `http_request` may send to one origin."""

    origin: str
    """Scheme, host and port to which the header is limited."""
    header: Annotated[str, matching(r"[A-Za-z0-9-]{1,100}", "allowed: letters, digits and -")] = (
        "Authorization"
    )
    prefix: str = ""
    """Text before the secret, such as `Bearer `."""
    secret: SecretSettings

    _origin = field_validator("origin")(_url)


class HttpSettings(Section):
    """Outbound HTTP calls."""

    allow: tuple[str, ...] = ()
    """Allowed networks, addresses and hosts that are not public, with an optional port."""
    proxy: str | None = None
    """URL of a proxy for all calls; environment variables are ignored."""
    ca_file: UserPath | None = None
    """File of additional CA certificates."""
    max_body: int = Field(10 * 1024 * 1024, ge=1024, le=MAX_BODY)
    """Maximum size of a decompressed response, in bytes."""
    max_redirects: int = Field(5, ge=0, le=20)
    """Maximum number of redirects of an `http_request`."""
    credentials: dict[str, CredentialSettings] = Field({})

    @field_validator("allow")
    @classmethod
    def _check_allow(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for entry in value:
            if not (_is_network(entry) or HOST.match(entry)):
                raise ValueError(
                    f"{entry!r} is not a network, host or host:port, such as"
                    " 10.0.0.0/8, db.internal, localhost:8080, [::1]:8080"
                )
        return value

    _proxy = field_validator("proxy")(_url)


class LlmSettings(Section):
    """A model for `llm_generate`."""

    provider: Literal["openai", "anthropic"]
    """Protocol of the server: `/chat/completions` or `/v1/messages`."""
    base_url: str | None = None
    """Default: the provider's URL. OpenAI's ends with `/v1`, Anthropic's does not."""
    model: str = Field(min_length=1, max_length=200)
    max_tokens: int = Field(4096, ge=1, le=1_000_000)
    """Default maximum of the output tokens."""
    api_key: SecretSettings | None = None
    """API key; default: no key is sent, as for a local server."""

    _base_url = field_validator("base_url")(_url)


class GatewaySettings(Section):
    """A model provider that agents call through the worker, which adds the key."""

    provider: Literal["openai", "anthropic", "google"]
    """API of the server: Responses and Chat Completions, Messages, or the Gemini API."""
    base_url: str | None = None
    """Default: the provider's URL. OpenAI's ends with `/v1`, those of the others do not."""
    api_key: SecretSettings | None = None
    """API key; default: no key is sent, as for a local server."""

    _base_url = field_validator("base_url")(_url)


_Price = Annotated[float, Field(ge=0, le=1_000_000)]


class PriceSettings(Section):
    """Price of a model, in US dollars per million tokens."""

    input: _Price
    output: _Price
    cache_read: _Price | None = None
    """Input that was read from a cache; default: as `input`."""
    cache_write: _Price | None = None
    """Input that was written to a cache; default: as `input`."""
    date: datetime.date
    """Day on which the price was looked up."""
    source: str = Field(min_length=1, max_length=500)
    """Where it was looked up, such as the URL of the provider's price list."""


class NetworkSettings(Section):
    """A group of hosts, for `network = ["NAME"]`."""

    hosts: tuple[HostEntry, ...] = Field(min_length=1, max_length=MAX_HOSTS)
    """Hosts with an optional port (443); `*.host` are all names below it."""


class WebhookSettings(Section):
    """A receiver of signed webhooks, for notifications and `webhook_dispatch`."""

    url: str
    secret: SecretSettings
    """`whsec_…` or base64; one secret per line during a rotation."""
    on: tuple[Literal["completed", "failed", "dead_letter", "canceled", "expired"], ...] = ()
    """Outcomes of any job for which it is notified."""

    _check_url = field_validator("url")(_url)


class ToolSettings(LimitSettings):
    """A program for `execute_tool`, and its limits."""

    command: tuple[str, ...] = Field(min_length=1)
    """Program and arguments, without a shell; `{python}` is this interpreter."""
    description: str = ""
    input_schema: JsonValue = True
    """JSON Schema of its standard input."""
    output_schema: JsonValue = None
    """JSON Schema of its output; default: any text."""
    exit_codes: dict[str, Literal["TRANSIENT_INFRA", "TRANSIENT_APP", "PERMANENT"]] = Field({})
    """Error classes of exit codes; default: sysexits.h, and TRANSIENT_INFRA for 1."""
    env: dict[str, str] = Field({})
    """Environment variables."""
    pass_env: tuple[str, ...] = ()
    """Names of inherited variables, besides the allowlist."""
    network: Network = Field(False)
    """Its network."""

    @field_validator("input_schema", "output_schema")
    @classmethod
    def _check_schema(cls, value: Any) -> Any:
        if not (value is None or isinstance(value, dict | bool)):
            raise ValueError("must be a JSON Schema: a table")
        return value

    @field_validator("exit_codes")
    @classmethod
    def _check_exit_codes(cls, value: dict[str, str]) -> dict[str, str]:
        for code in value:
            if not (code.isascii() and code.isdigit() and 1 <= int(code) <= 255):
                raise ValueError(f"{code!r} is not an exit code; use 1 to 255")
        return value


def _is_network(entry: str) -> bool:
    try:
        ipaddress.ip_network(entry, strict=False)
    except ValueError:
        return False
    return True
