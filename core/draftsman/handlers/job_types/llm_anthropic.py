"""Provider for the Anthropic Messages API, `/v1/messages`."""

from __future__ import annotations

from typing import Any, Final

from draftsman.handlers.job_types.llm_provider import (
    Completion,
    auth_header,
    event_data,
    messages,
    to_failure,
)
from draftsman.jobs.requests.payloads import LlmGenerate
from draftsman.outbound.server_sent_events import ServerSentEvent
from draftsman.settings import LlmSettings

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
