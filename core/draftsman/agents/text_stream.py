"""A growing text of an agent, shown in pieces: at most two messages a second."""

from __future__ import annotations

import time
from typing import Final

from draftsman.agents.agent_client import AgentClient

INTERVAL: Final = 0.5
"""Minimum seconds between two pieces."""
PIECE: Final = 16_000
"""Maximum characters of a piece."""


class TextStream:
    """A message or a thought, of which the pieces that are not shown yet are collected."""

    def __init__(self, client: AgentClient, kind: str) -> None:
        self._client, self._kind = client, kind
        self._text = ""
        self._sent = 0
        self._sent_at = -INTERVAL

    def add(self, piece: str) -> None:
        """Append a piece, and show what was collected, if it is time."""
        self.send(self._text + piece)

    def send(self, text: str) -> None:
        """Show the rest of this text, if it is time."""
        self._text = text
        if time.monotonic() - self._sent_at >= INTERVAL:
            self._show()

    def end(self, text: str | None = None) -> None:
        """Show the rest of the text; the next piece begins another."""
        self._text = self._text if text is None else text
        self._show()
        self._text, self._sent = "", 0

    def _show(self) -> None:
        if not self._text.strip():
            return
        while piece := self._text[self._sent : self._sent + PIECE]:
            self._client.send("activity", kind=self._kind, text=piece, continues=self._sent > 0)
            self._sent += len(piece)
            self._sent_at = time.monotonic()
