"""Provider for servers with an OpenAI-compatible `/chat/completions`."""

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
from draftsman.settings.llm import LlmSettings

BASE: Final = "https://api.openai.com/v1"
DONE: Final = "[DONE]"


class OpenAI:
    """Reads a stream of chunks with `choices[0].delta`, usage, and `[DONE]`."""

    def request(
        self, payload: LlmGenerate, settings: LlmSettings, key: str | None
    ) -> tuple[str, dict[str, str], dict[str, Any]]:
        """Return URL, headers and body of the request."""
        conversation = messages(payload)
        if payload.system is not None:
            conversation.insert(0, {"role": "system", "content": payload.system})
        body: dict[str, Any] = {
            "model": payload.model or settings.model,
            "messages": conversation,
            "max_tokens": payload.max_tokens or settings.max_tokens,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        if payload.temperature is not None:
            body["temperature"] = payload.temperature
        if payload.stop:
            body["stop"] = payload.stop
        url = (settings.base_url or BASE).rstrip("/") + "/chat/completions"
        return url, dict(auth_header(key, "authorization", "Bearer ")), body

    def add_event(self, event: ServerSentEvent, completion: Completion) -> None:
        """Add an event; raises Failure for an error event."""
        if event.data.strip() == DONE:
            completion.is_complete = True
            return
        data = event_data(event)
        if "error" in data:
            raise to_failure(data, "the model server ended the stream with an error")
        completion.model = str(data.get("model") or completion.model)[:200]
        completion.count(data.get("usage"), "prompt_tokens", "completion_tokens")
        choices = data.get("choices")
        first = choices[0] if isinstance(choices, list) and choices else None
        if not isinstance(first, dict):
            return
        delta = first.get("delta")
        if isinstance(delta, dict):
            completion.add(delta.get("content"))
        if isinstance(reason := first.get("finish_reason"), str):
            completion.finish = reason[:100]
