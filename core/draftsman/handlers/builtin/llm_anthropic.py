"""The protocol of `/v1/messages`."""

from __future__ import annotations

from typing import Any, Final

from draftsman.domain.job_payloads import LlmGenerate
from draftsman.handlers.builtin.llm_provider import (
    Completion,
    auth_header,
    event_data,
    messages,
    to_failure,
)
from draftsman.outbound.server_sent_events import ServerSentEvent
from draftsman.settings import LlmSettings

BASE: Final = "https://api.anthropic.com"
VERSION: Final = "2023-06-01"


class Anthropic:
    """Streams `message_start`, pieces of content, `message_delta`, `message_stop`."""

    def request(
        self, asked: LlmGenerate, settings: LlmSettings, key: str | None
    ) -> tuple[str, dict[str, str], dict[str, Any]]:
        """Return URL, headers and body."""
        body: dict[str, Any] = {
            "model": asked.model or settings.model,
            "messages": messages(asked),
            "max_tokens": asked.max_tokens or settings.max_tokens,
            "stream": True,
        }
        if asked.system is not None:
            body["system"] = asked.system
        if asked.temperature is not None:
            body["temperature"] = asked.temperature
        if asked.stop:
            body["stop_sequences"] = asked.stop
        url = (settings.base_url or BASE).rstrip("/") + "/v1/messages"
        return url, {"anthropic-version": VERSION, **auth_header(key, "x-api-key")}, body

    def add_event(self, event: ServerSentEvent, into: Completion) -> None:
        """Take one event; raises Failure for an error among them. Unknown kinds pass."""
        data = event_data(event)
        match data.get("type"):
            case "error":
                raise to_failure(data, "the model's server broke off")
            case "message_start" if isinstance(message := data.get("message"), dict):
                into.model = str(message.get("model") or "")[:200]
                into.count(message.get("usage"), "input_tokens", "output_tokens")
            case "content_block_delta" if isinstance(delta := data.get("delta"), dict):
                if delta.get("type") == "text_delta":
                    into.add(delta.get("text"))
            case "message_delta":
                into.count(data.get("usage"), "input_tokens", "output_tokens")
                delta = data.get("delta")
                if isinstance(delta, dict) and isinstance(delta.get("stop_reason"), str):
                    into.finish = delta["stop_reason"][:100]
            case "message_stop":
                into.over = True
