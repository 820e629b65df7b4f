"""Payload models of the built-in job types."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Self
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
from draftsman.deliveries import target
from draftsman.errors import UsageError
from draftsman.field_errors import matching
from draftsman.log import redact
from draftsman.questions.question import OnDeny, OnExpire, QuestionKind

if TYPE_CHECKING:
    from draftsman.questions.question_spec import QuestionSpec

_EVENT: Final = "allowed: letters, digits and _ . - without spaces, such as invoice.paid"
Name = Annotated[str, Field(min_length=1, max_length=100)]
Schema = Annotated[dict[str, Any] | bool, AfterValidator(lambda schema: bounded_schema(schema))]
"""A JSON Schema of limited cost; `draftsman.json_schemas` checks its validity."""
METHODS: Final = "GET, HEAD, OPTIONS, POST, PUT, PATCH, DELETE"
IDEMPOTENT: Final = frozenset(METHODS.split(", ")) - {"POST", "PATCH"}
"""Methods that a resumed run may repeat (RFC 9110)."""
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
"""Headers that the client sets."""


class Payload(BaseModel):
    """Base of payload models: immutable, with strict keys and types."""

    model_config = ConfigDict(
        defer_build=True, extra="forbid", frozen=True, strict=True, allow_inf_nan=False
    )


class HttpRequest(Payload):
    """`http_request`: an HTTP request and its expected response."""

    url: str = Field(max_length=8000)
    method: str = "GET"
    headers: dict[str, str] = Field({}, max_length=100)
    query: dict[str, str | int | float | bool] = Field({}, max_length=100)
    text: str | None = None
    """Body as UTF-8 text."""
    json_: Any = Field(None, alias="json")
    """Body as JSON."""
    credential: Name | None = None
    """Name of a header in `[http.credentials]`."""
    follow_redirects: bool = True
    expect_status: list[Annotated[int, Field(ge=100, le=599)]] = []
    """Statuses that count as success; default: 200 to 299."""
    output: Schema | None = None
    """JSON Schema of the response."""

    @field_validator("url")
    @classmethod
    def _check_url(cls, value: str) -> str:
        return web_url(value)

    @field_validator("method")
    @classmethod
    def _check_method(cls, value: str) -> str:
        if value not in METHODS.split(", "):
            raise ValueError(f"choose: {METHODS}")
        return value

    @field_validator("headers")
    @classmethod
    def _check_headers(cls, value: dict[str, str]) -> dict[str, str]:
        for name, text in value.items():
            check_header(name, text)
        return value

    @model_validator(mode="after")
    def _one_body(self) -> Self:
        body = self.model_fields_set & {"text", "json_"}
        if len(body) == 2:
            raise ValueError("use text or json, not both")
        if body and self.method in {"GET", "HEAD"}:
            raise ValueError(f"{self.method} takes no body; use another method")
        return self


class WebhookDispatch(Payload):
    """`webhook_dispatch`: an event for a configured webhook."""

    webhook: Name
    """Name of the webhook in `[webhooks]`."""
    type: Annotated[str, matching(r"[A-Za-z0-9_.-]{1,200}", _EVENT)]
    """Type of the event, such as `invoice.paid`."""
    data: dict[str, Any] = {}


class LlmMessage(Payload):
    """A turn of a conversation."""

    role: Literal["user", "assistant"]
    content: Annotated[str, Field(min_length=1)]


class LlmGenerate(Payload):
    """`llm_generate`: a prompt for a configured model."""

    llm: Name | None = None
    """Name of the model in `[llm]`; default: the only configured model."""
    prompt: Annotated[str, Field(min_length=1)] | None = None
    messages: list[LlmMessage] = Field([], max_length=1000)
    system: str | None = None
    model: Name | None = None
    """Another model of the same provider."""
    max_tokens: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    stop: list[Annotated[str, Field(min_length=1, max_length=200)]] = Field([], max_length=8)
    output: Schema | None = None
    """JSON Schema of the text, which must be JSON."""

    @model_validator(mode="after")
    def _check_prompt(self) -> Self:
        if (self.prompt is None) == (not self.messages):
            raise ValueError("specify exactly one of prompt and messages")
        return self


class ExecuteTool(Payload):
    """`execute_tool`: a call of a configured tool."""

    tool: Name
    """Name of the tool in `[tools]`."""
    input: Any = {}
    """JSON for the tool's standard input; the tool's schema validates it."""


class SendNotification(Payload):
    """`send_notification`: a message for the job's targets, or for `targets`."""

    text: Annotated[str, Field(min_length=1, max_length=40_000)]
    targets: list[str] = Field([], max_length=50)
    """`log`, `webhook:NAME`, …; default: the job's own targets."""

    @field_validator("targets")
    @classmethod
    def _check_targets(cls, value: list[str]) -> list[str]:
        try:
            for text in value:
                target.parse(text)
        except UsageError as error:
            raise ValueError(str(error)) from None
        return value


class AskPeople(Payload):
    """`ask_people`: a question or an approval, whose answer is the result of the job."""

    text: Annotated[str, Field(min_length=1, max_length=3000)]
    kind: Literal["input", "approval"] = "input"
    choices: list[str | dict[str, str]] = Field([], max_length=500)
    freeform: bool | None = None
    """Whether free text is allowed; default: only without choices."""
    context: Annotated[str, Field(max_length=20_000)] | None = None
    action: dict[str, Any] | None = None
    """The exact action to approve."""
    approvers: list[Name] | None = None
    quorum: int = 1
    default: str | None = None
    expires_in: float | None = None
    """Seconds; 0: never; default: as configured."""
    on_expire: Literal["expire", "default", "continue", "escalate"] | None = None
    escalate_to: Name | None = None
    critical: bool = False
    """Whether it may interrupt people in their quiet hours, and page them."""

    @model_validator(mode="after")
    def _check_question(self) -> Self:
        try:
            self.question("question")
        except ValidationError as error:
            raise ValueError(field_errors.error_line(error)) from None
        return self

    def question(self, key: str) -> QuestionSpec:
        """Return the question with this key; raises ValidationError."""
        from draftsman.questions.question_spec import QuestionSpec

        on_expire = OnExpire.EXPIRE if self.default is None else OnExpire.DEFAULT
        is_input = self.kind == "input"
        return QuestionSpec.model_validate(
            self.model_dump()
            | {
                "key": key,
                "kind": QuestionKind(self.kind),
                "freeform": (is_input and not self.choices)
                if self.freeform is None
                else self.freeform,
                "expires_in": self.expires_in or None,
                "never_expires": self.expires_in == 0,
                "on_expire": self.on_expire or on_expire,
                "on_deny": OnDeny.CONTINUE,
            }
        )


class MergePullRequest(Payload):
    """`merge_pull_request`: the merge of a job's pull request, after an approval."""

    job: Annotated[int, Field(ge=1)]
    """Number of the job that opened it."""


MODELS: Final[dict[str, type[Payload]]] = {
    "http_request": HttpRequest,
    "webhook_dispatch": WebhookDispatch,
    "llm_generate": LlmGenerate,
    "execute_tool": ExecuteTool,
    "send_notification": SendNotification,
    "ask_people": AskPeople,
    "merge_pull_request": MergePullRequest,
}


def parse(type: str, payload: Mapping[str, Any]) -> Payload:
    """Validate the payload of a built-in type; raises FieldError."""
    try:
        return MODELS[type].model_validate(dict(payload))
    except ValidationError as error:
        fields = MODELS[type].model_fields.items()
        raise field_errors.field_error(
            error,
            f"payload of {type}",
            parent="payload",
            allowed=(info.alias or name for name, info in fields),
            shows=lambda field: "headers" not in field,
        ) from None


def notification_targets(payload: Mapping[str, Any]) -> Sequence[str]:
    """Return the targets in the payload of a `send_notification`."""
    targets: Sequence[str] = payload.get("targets") or ()
    return targets


def web_url(value: str) -> str:
    """Validate an HTTP URL; raises ValueError."""
    try:
        parts = urlsplit(value)
        port = parts.port
    except ValueError as error:
        raise ValueError(f"invalid URL: {error}") from None
    if parts.scheme.lower() not in {"http", "https"} or not parts.hostname or port == 0:
        raise ValueError("must be a URL with a host, starting with http:// or https://")
    if any(ord(char) <= 32 or ord(char) == 127 for char in value):
        raise ValueError("a URL may not contain spaces or control characters; encode them as %20")
    if parts.username is not None or parts.password is not None:
        raise ValueError("a payload is stored and may not contain passwords; use a credential")
    return value


def check_header(name: str, text: str) -> None:
    """Raise ValueError for a header that is not allowed in a payload."""
    lower = name.lower()
    if not name or not set(lower) <= _TOKEN:
        raise ValueError(f"{name[:60]!r} is not a valid header name")
    if lower in RESERVED_HEADERS:
        raise ValueError(f"{lower} is set by draftsman; leave it out")
    if SECRET.search(lower) or redact(f"{lower}: {text}") != f"{lower}: {text}":
        raise ValueError(f"a payload is stored and may not contain {lower}; use a credential")
    if not text.isascii() or any(
        (ord(char) < 32 and char != "\t") or char == "\x7f" for char in text
    ):
        raise ValueError(f"{lower} may contain only printable ASCII")


def output_schema(type: str, payload: Mapping[str, Any]) -> Any:
    """Return the payload's JSON Schema of its output, or None."""
    return payload.get("output") if "output" in MODELS[type].model_fields else None


def bounded_schema(schema: Any, depth: int = 0) -> Any:
    """Return the schema; raises ValueError for keywords that a hostile value makes expensive.

    Names of properties are not keywords.
    """
    if depth > MAX_DEPTH:
        raise ValueError(f"a schema may be nested at most {MAX_DEPTH} levels deep")
    if isinstance(schema, list):
        for part in schema:
            bounded_schema(part, depth + 1)
    if not isinstance(schema, dict):
        return schema
    if refused := sorted(_EXPENSIVE & schema.keys()):
        raise ValueError(
            f"{refused[0]} is not allowed in a payload's schema: its evaluation may not terminate"
        )
    for key, value in schema.items():
        if key in _NAMED and isinstance(value, dict):
            bounded_schema(list(value.values()), depth + 1)
        elif key not in {"const", "enum", "default", "examples"}:
            bounded_schema(value, depth + 1)
    return schema


MAX_DEPTH: Final = 100
"""Levels of a schema; each subschema takes two or three."""
_EXPENSIVE: Final = frozenset({"pattern", "patternProperties", "uniqueItems"})
_NAMED: Final = frozenset({"properties", "$defs", "definitions", "dependentSchemas"})
_TOKEN: Final = frozenset("abcdefghijklmnopqrstuvwxyz0123456789!#$%&'*+-.^_`|~")
