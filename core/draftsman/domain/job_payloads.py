"""What the built-in job types are asked, strictly; the answer to a wrong one is a single line."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, Literal, Self
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from draftsman import field_errors
from draftsman.domain.messages import target
from draftsman.errors import UsageError
from draftsman.field_errors import matching
from draftsman.log import redact

_EVENT: Final = "allowed: letters, digits and _ . - without spaces, such as invoice.paid"
Name = Annotated[str, Field(min_length=1, max_length=100)]
Schema = Annotated[dict[str, Any] | bool, AfterValidator(lambda schema: bounded_schema(schema))]
"""A JSON Schema within bounds; `draftsman.schemas` checks whether it is one."""
METHODS: Final = "GET, HEAD, OPTIONS, POST, PUT, PATCH, DELETE"
IDEMPOTENT: Final = frozenset(METHODS.split(", ")) - {"POST", "PATCH"}
"""Methods that a resumed run may repeat without a word (RFC 9110)."""
SECRET: Final = re.compile(
    r"(?:^|[-_.])(?:authorization|cookie2?|(?:\w*[a-z])?token|secret|passw(?:or)?d|passphrase|pwd"
    r"|jwt|credentials?|auth|session(?:[-_.]?id)?|otp|api[-_.]?key|apikey"
    r"|(?:access|account|app|application|auth|consumer|functions|license|master|private|secret"
    r"|service|shared|subscription)[-_.]?key)(?:$|[-_.])"
)
"""Names of headers that carry a credential: `PRIVATE-TOKEN`, `X-Api-Key`, `X-Vault-Token`, …"""
RESERVED_HEADERS: Final = frozenset(
    {
        *("host", "content-length", "transfer-encoding", "connection", "upgrade", "te", "trailer"),
        *("keep-alive", "expect", "accept-encoding", "idempotency-key", "proxy-connection"),
    }
)
"""Headers that the client writes itself."""


class Payload(BaseModel):
    """A payload: immutable, and strict about its keys and types."""

    model_config = ConfigDict(
        defer_build=True, extra="forbid", frozen=True, strict=True, allow_inf_nan=False
    )


class HttpRequest(Payload):
    """`http_request`: one request, and what counts as an answer."""

    url: str = Field(max_length=8000)
    method: str = "GET"
    headers: dict[str, str] = Field({}, max_length=100)
    query: dict[str, str | int | float | bool] = Field({}, max_length=100)
    text: str | None = None
    """The body, as UTF-8."""
    json_: Any = Field(None, alias="json")
    """The body, as JSON."""
    credential: Name | None = None
    """A header that the configuration keeps, by its name in `[http.credentials]`."""
    follow_redirects: bool = True
    expect_status: list[Annotated[int, Field(ge=100, le=599)]] = []
    """Statuses that count as done; none given: 200 to 299."""
    output: Schema | None = None
    """JSON Schema that the answer must fit."""

    @field_validator("url")
    @classmethod
    def _is_a_url(cls, value: str) -> str:
        return web_url(value)

    @field_validator("method")
    @classmethod
    def _is_a_method(cls, value: str) -> str:
        if value not in METHODS.split(", "):
            raise ValueError(f"choose: {METHODS}")
        return value

    @field_validator("headers")
    @classmethod
    def _may_be_sent(cls, value: dict[str, str]) -> dict[str, str]:
        for name, text in value.items():
            check_header(name, text)
        return value

    @model_validator(mode="after")
    def _one_body(self) -> Self:
        given = self.model_fields_set & {"text", "json_"}
        if len(given) == 2:
            raise ValueError("give text or json, not both")
        if given and self.method in {"GET", "HEAD"}:
            raise ValueError(f"{self.method} takes no body; give another method")
        return self


class WebhookDispatch(Payload):
    """`webhook_dispatch`: an event for a receiver that the configuration knows."""

    webhook: Name
    """Its name in `[webhooks]`."""
    type: Annotated[str, matching(r"[A-Za-z0-9_.-]{1,200}", _EVENT)]
    """What happened, such as `invoice.paid`."""
    data: dict[str, Any] = {}


class LlmMessage(Payload):
    """One turn of a conversation."""

    role: Literal["user", "assistant"]
    content: Annotated[str, Field(min_length=1)]


class LlmGenerate(Payload):
    """`llm_generate`: a text from a model of the configuration."""

    llm: Name | None = None
    """Its name in `[llm]`; unset: the only one that is configured."""
    prompt: Annotated[str, Field(min_length=1)] | None = None
    messages: list[LlmMessage] = Field([], max_length=1000)
    system: str | None = None
    model: Name | None = None
    """Another model of the same provider."""
    max_tokens: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    stop: list[Annotated[str, Field(min_length=1, max_length=200)]] = Field([], max_length=8)
    output: Schema | None = None
    """JSON Schema: the text must be JSON that fits it."""

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if (self.prompt is None) == (not self.messages):
            raise ValueError("give prompt or messages, one of them")
        return self


class ExecuteTool(Payload):
    """`execute_tool`: one call of a tool that the configuration declares."""

    tool: Name
    """Its name in `[tools]`."""
    input: Any = {}
    """What it reads on its standard input, as JSON; checked by the tool's own schema."""


class SendNotification(Payload):
    """`send_notification`: a message for the job's targets, or for those named here."""

    text: Annotated[str, Field(min_length=1, max_length=40_000)]
    targets: list[str] = Field([], max_length=50)
    """`log`, `channel:place`, …; none: where the job's own messages go."""

    @field_validator("targets")
    @classmethod
    def _are_targets(cls, value: list[str]) -> list[str]:
        try:
            for text in value:
                target.parse(text)
        except UsageError as error:
            raise ValueError(str(error)) from None
        return value


MODELS: Final[dict[str, type[Payload]]] = {
    "http_request": HttpRequest,
    "webhook_dispatch": WebhookDispatch,
    "llm_generate": LlmGenerate,
    "execute_tool": ExecuteTool,
    "send_notification": SendNotification,
}


def parse(type: str, payload: Mapping[str, Any]) -> Payload:
    """Return the payload of a built-in type; raises UsageError in one line."""
    try:
        return MODELS[type].model_validate(dict(payload))
    except ValidationError as error:
        raise UsageError(_line(type, error)) from None


def notification_targets(payload: Mapping[str, Any]) -> Sequence[str]:
    """Return the targets that the payload of a `send_notification` names."""
    found: Sequence[str] = payload.get("targets") or ()
    return found


def web_url(value: str) -> str:
    """Return a URL that can be asked; raises ValueError."""
    try:
        parts = urlsplit(value)
        port = parts.port
    except ValueError as error:
        raise ValueError(f"it is no URL: {error}") from None
    if parts.scheme.lower() not in {"http", "https"} or not parts.hostname or port == 0:
        raise ValueError("give a URL that starts with http:// or https:// and names a host")
    if any(ord(char) <= 32 or ord(char) == 127 for char in value):
        raise ValueError("a URL has no spaces or control characters; write them as %20")
    if parts.username is not None or parts.password is not None:
        raise ValueError("a payload is stored: no user or password in it; name a credential")
    return value


def check_header(name: str, text: str) -> None:
    """Raise ValueError for a header that a payload must not give."""
    lower = name.lower()
    if not name or not set(lower) <= _TOKEN:
        raise ValueError(f"{name[:60]!r} is no header name")
    if lower in RESERVED_HEADERS:
        raise ValueError(f"{lower} is written by draftsman itself; leave it out")
    if SECRET.search(lower) or redact(f"{lower}: {text}") != f"{lower}: {text}":
        raise ValueError(f"a payload is stored: no {lower} in it; name a credential")
    if not text.isascii() or any(
        (ord(char) < 32 and char != "\t") or char == "\x7f" for char in text
    ):
        raise ValueError(f"{lower} may hold printable ASCII only")


def output_schema(type: str, payload: Mapping[str, Any]) -> Any:
    """Return the JSON Schema that a payload brings along; None for a payload without one."""
    return payload.get("output") if "output" in MODELS[type].model_fields else None


def bounded_schema(schema: Any, depth: int = 0) -> Any:
    """Return a schema without what takes time beyond measure on a hostile value.

    Raises ValueError. Names of properties are no keywords.
    """
    if depth > DEEPEST:
        raise ValueError(f"a schema is nested {DEEPEST} levels deep at most")
    if isinstance(schema, list):
        for part in schema:
            bounded_schema(part, depth + 1)
    if not isinstance(schema, dict):
        return schema
    if found := sorted(_ENDLESS & schema.keys()):
        raise ValueError(
            f"{found[0]} is not taken in a payload's schema: a value can make it endless"
        )
    for key, value in schema.items():
        if key in _NAMED and isinstance(value, dict):
            bounded_schema(list(value.values()), depth + 1)
        elif key not in {"const", "enum", "default", "examples"}:
            bounded_schema(value, depth + 1)
    return schema


DEEPEST: Final = 100
"""Levels of a schema; each subschema takes two or three."""
_ENDLESS: Final = frozenset({"pattern", "patternProperties", "uniqueItems"})
_NAMED: Final = frozenset({"properties", "$defs", "definitions", "dependentSchemas"})
_TOKEN: Final = frozenset("abcdefghijklmnopqrstuvwxyz0123456789!#$%&'*+-.^_`|~")


def _line(type: str, error: ValidationError) -> str:
    key, message = field_errors.first_error(error)
    first = error.errors()[0]
    value = first["input"]
    shown = f" {value[:60]!r}" if isinstance(value, str) and "headers" not in key else ""
    if first["type"] == "extra_forbidden":
        names = (info.alias or name for name, info in MODELS[type].model_fields.items())
        message = f"unknown key; allowed: {', '.join(names)}"
    where = f" {key}{shown}" if key else ""
    return f"payload of {type}:{where}: {message}" if where else f"payload of {type}: {message}"
