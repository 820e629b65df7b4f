"""What both protocols of language models have in common."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from draftsman.domain.job_payloads import LlmGenerate
from draftsman.domain.retries.error_classes import known
from draftsman.errors import Failure
from draftsman.handlers.builtin.strict_json import parse_json
from draftsman.outbound.server_sent_events import ServerSentEvent
from draftsman.settings import LlmSettings

MAX_TEXT: Final = 4 * 1024 * 1024
"""Characters of a generated text at most."""


@dataclass(slots=True)
class Completion:
    """What came so far."""

    parts: list[str] = field(default_factory=list)
    size: int = 0
    model: str = ""
    finish: str | None = None
    """Why it ended, in the server's word."""
    over: bool = False
    """Whether the stream said that it is over."""
    input_tokens: int = 0
    output_tokens: int = 0

    @property
    def text(self) -> str:
        """All of the text."""
        return "".join(self.parts)

    def add(self, text: object) -> None:
        """Take a piece of the text; raises Failure beyond MOST_TEXT."""
        if not isinstance(text, str):
            return
        self.parts.append(text)
        self.size += len(text)
        if self.size > MAX_TEXT:
            why = f"the model wrote over {MAX_TEXT:,} characters; give max_tokens"
            raise Failure(why, origin="http", code="body_too_large")

    def count(self, usage: object, given: str, made: str) -> None:
        """Take token counts, each the newest of its kind."""
        if isinstance(usage, dict):
            self.input_tokens = _number(usage.get(given), self.input_tokens)
            self.output_tokens = _number(usage.get(made), self.output_tokens)

    def usage(self) -> dict[str, Any]:
        """Return what the run used, as an agent would report it."""
        return {
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "models": [self.model] if self.model else [],
        }


class Provider(Protocol):
    """One protocol of servers."""

    def request(
        self, asked: LlmGenerate, settings: LlmSettings, key: str | None
    ) -> tuple[str, dict[str, str], dict[str, Any]]:
        """Return URL, headers and body."""

    def add_event(self, event: ServerSentEvent, into: Completion) -> None:
        """Take one event of the stream; raises Failure for an error among them."""


def messages(asked: LlmGenerate) -> list[dict[str, str]]:
    """Return the conversation, which a lone prompt is too."""
    if asked.prompt is not None:
        return [{"role": "user", "content": asked.prompt}]
    return [{"role": one.role, "content": one.content} for one in asked.messages]


def event_data(event: ServerSentEvent) -> dict[str, Any]:
    """Return an event's JSON object; raises Failure for what is none."""
    try:
        found = parse_json(event.data)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        text = "the model's server sent an event that is no JSON object"
        raise Failure(text, origin="llm", code="server_error")
    return found


def to_failure(
    body: object, where: str, status: int | None = None, wait: float | None = None
) -> Failure:
    """Return the Failure that the body of an error, or an error in the stream, tells of."""
    error = body.get("error") if isinstance(body, dict) else None
    error = error if isinstance(error, dict) else {}
    words = [word for word in (error.get("code"), error.get("type")) if isinstance(word, str)]
    code = next((word for word in words if known("llm", word) is not None), None)
    said = " ".join(str(error.get("message") or "").split())[:500]
    head = f"{where}: {status}" if status is not None else where
    named = code or next(iter(words), None)
    text = ": ".join(part for part in (head, named, said) if part)
    return Failure(text, origin="llm", code=code, http_status=status, retry_after=wait)


def _number(value: object, default: int) -> int:
    good = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10**12
    return value if good and isinstance(value, int) else default


def auth_header(key: str | None, header: str, prefix: str = "") -> Mapping[str, str]:
    """Return the header that proves who asks; none without a key."""
    return {} if key is None else {header: prefix + key}
