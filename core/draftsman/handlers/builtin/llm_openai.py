"""The protocol of `/chat/completions`, which many servers speak."""

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

BASE: Final = "https://api.openai.com/v1"
DONE: Final = "[DONE]"


class OpenAI:
    """Streams chunks with `choices[0].delta`, then usage, then `[DONE]`."""

    def request(
        self, asked: LlmGenerate, settings: LlmSettings, key: str | None
    ) -> tuple[str, dict[str, str], dict[str, Any]]:
        """Return URL, headers and body."""
        turns = messages(asked)
        if asked.system is not None:
            turns.insert(0, {"role": "system", "content": asked.system})
        body: dict[str, Any] = {
            "model": asked.model or settings.model,
            "messages": turns,
            "max_tokens": asked.max_tokens or settings.max_tokens,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        if asked.temperature is not None:
            body["temperature"] = asked.temperature
        if asked.stop:
            body["stop"] = asked.stop
        url = (settings.base_url or BASE).rstrip("/") + "/chat/completions"
        return url, dict(auth_header(key, "authorization", "Bearer ")), body

    def add_event(self, event: ServerSentEvent, into: Completion) -> None:
        """Take one event; raises Failure for an error among them."""
        if event.data.strip() == DONE:
            into.over = True
            return
        data = event_data(event)
        if "error" in data:
            raise to_failure(data, "the model's server broke off")
        into.model = str(data.get("model") or into.model)[:200]
        into.count(data.get("usage"), "prompt_tokens", "completion_tokens")
        choices = data.get("choices")
        first = choices[0] if isinstance(choices, list) and choices else None
        if not isinstance(first, dict):
            return
        delta = first.get("delta")
        if isinstance(delta, dict):
            into.add(delta.get("content"))
        if isinstance(reason := first.get("finish_reason"), str):
            into.finish = reason[:100]
