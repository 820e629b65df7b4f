"""Provider protocol for language models, and helpers of the providers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from draftsman.errors import Failure
from draftsman.handlers.job_types.result_content import parse_json
from draftsman.jobs.requests.payloads import LlmGenerate
from draftsman.jobs.retries import known
from draftsman.outbound.server_sent_events import ServerSentEvent
from draftsman.settings.llm import LlmSettings

MAX_TEXT: Final = 4 * 1024 * 1024
"""Maximum characters of a generated text."""


@dataclass(slots=True)
class Completion:
    """The text, token counts and state of a completion, read from a stream."""

    pieces: list[str] = field(default_factory=list)
    size: int = 0
    model: str = ""
    finish: str | None = None
    """The stop reason of the server."""
    is_complete: bool = False
    """Whether the stream has had its final event."""
    input_tokens: int = 0
    output_tokens: int = 0

    @property
    def text(self) -> str:
        """The text so far."""
        return "".join(self.pieces)

    def add(self, text: object) -> None:
        """Append a piece of the text; raises Failure beyond MAX_TEXT."""
        if not isinstance(text, str):
            return
        self.pieces.append(text)
        self.size += len(text)
        if self.size > MAX_TEXT:
            text = f"the model generated more than {MAX_TEXT:,} characters; set max_tokens"
            raise Failure(text, origin="http", code="body_too_large")

    def count(self, usage: object, input_field: str, output_field: str) -> None:
        """Set the token counts from a usage object; missing fields keep their count."""
        if isinstance(usage, dict):
            self.input_tokens = _token_count(usage.get(input_field), self.input_tokens)
            self.output_tokens = _token_count(usage.get(output_field), self.output_tokens)

    def usage(self) -> dict[str, Any]:
        """Return the usage in the format that agents report."""
        return {
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "models": [self.model] if self.model else [],
        }


class Provider(Protocol):
    """The API of a kind of model server."""

    def request(
        self, payload: LlmGenerate, settings: LlmSettings, key: str | None
    ) -> tuple[str, dict[str, str], dict[str, Any]]:
        """Return URL, headers and body of the request."""

    def add_event(self, event: ServerSentEvent, completion: Completion) -> None:
        """Add an event of the stream; raises Failure for an error event."""


def messages(payload: LlmGenerate) -> list[dict[str, str]]:
    """Return the messages; a prompt becomes a user message."""
    if payload.prompt is not None:
        return [{"role": "user", "content": payload.prompt}]
    return [{"role": item.role, "content": item.content} for item in payload.messages]


def event_data(event: ServerSentEvent) -> dict[str, Any]:
    """Return an event's JSON object; raises Failure for anything else."""
    try:
        data = parse_json(event.data)
    except ValueError:
        data = None
    if not isinstance(data, dict):
        text = "the model server sent an event that is not a JSON object"
        raise Failure(text, origin="llm", code="server_error")
    return data


def to_failure(
    body: object, source: str, status: int | None = None, retry_after: float | None = None
) -> Failure:
    """Return the Failure for an error response, or for an error event in a stream."""
    error = body.get("error") if isinstance(body, dict) else None
    error = error if isinstance(error, dict) else {}
    codes = [value for value in (error.get("code"), error.get("type")) if isinstance(value, str)]
    code = next((value for value in codes if known("llm", value) is not None), None)
    message = " ".join(str(error.get("message") or "").split())[:500]
    prefix = f"{source}: {status}" if status is not None else source
    shown_code = code or next(iter(codes), None)
    text = ": ".join(part for part in (prefix, shown_code, message) if part)
    return Failure(text, origin="llm", code=code, http_status=status, retry_after=retry_after)


def _token_count(value: object, default: int) -> int:
    is_valid = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10**12
    return value if is_valid and isinstance(value, int) else default


def auth_header(key: str | None, header: str, prefix: str = "") -> Mapping[str, str]:
    """Return the header with the API key; empty without a key."""
    return {} if key is None else {header: prefix + key}


# Provider for the Anthropic Messages API, `/v1/messages`.


BASE: Final = "https://api.anthropic.com"
VERSION: Final = "2023-06-01"


class Anthropic:
    """Reads the stream `message_start`, `content_block_delta`, `message_delta`, `message_stop`."""

    def request(
        self, payload: LlmGenerate, settings: LlmSettings, key: str | None
    ) -> tuple[str, dict[str, str], dict[str, Any]]:
        """Return URL, headers and body of the request."""
        body: dict[str, Any] = {
            "model": payload.model or settings.model,
            "messages": messages(payload),
            "max_tokens": payload.max_tokens or settings.max_tokens,
            "stream": True,
        }
        if payload.system is not None:
            body["system"] = payload.system
        if payload.temperature is not None:
            body["temperature"] = payload.temperature
        if payload.stop:
            body["stop_sequences"] = payload.stop
        url = (settings.base_url or BASE).rstrip("/") + "/v1/messages"
        return url, {"anthropic-version": VERSION, **auth_header(key, "x-api-key")}, body

    def add_event(self, event: ServerSentEvent, completion: Completion) -> None:
        """Add an event; ignores unknown types. Raises Failure for an error event."""
        data = event_data(event)
        match data.get("type"):
            case "error":
                raise to_failure(data, "the model server ended the stream with an error")
            case "message_start" if isinstance(message := data.get("message"), dict):
                completion.model = str(message.get("model") or "")[:200]
                completion.count(message.get("usage"), "input_tokens", "output_tokens")
            case "content_block_delta" if isinstance(delta := data.get("delta"), dict):
                if delta.get("type") == "text_delta":
                    completion.add(delta.get("text"))
            case "message_delta":
                completion.count(data.get("usage"), "input_tokens", "output_tokens")
                delta = data.get("delta")
                if isinstance(delta, dict) and isinstance(delta.get("stop_reason"), str):
                    completion.finish = delta["stop_reason"][:100]
            case "message_stop":
                completion.is_complete = True
