"""Messages and output of an agent whose run has parked in a grace period: they are not stored."""

from __future__ import annotations

from collections import Counter
from typing import Final

from draftsman.agent_runs.protocol.codec import parse_line
from draftsman.agent_runs.protocol.protocol import RefusedMessage
from draftsman.sandbox.processes.line_splitter import MalformedLine

PARKED: Final = "the run is parked: exit, and continue in the next run"


class DroppedOutput:
    """Counts of the messages and of the standard error that a parked run dropped."""

    def __init__(self) -> None:
        self._messages: Counter[str] = Counter()
        self._bytes = 0

    def add_message(self, line: bytes | MalformedLine) -> RefusedMessage | None:
        """Count a message; return the refusal of a message with an id."""
        message = line if isinstance(line, MalformedLine) else parse_line(line)
        name = "malformed line" if isinstance(message, MalformedLine) else message.type
        self._messages[name] += 1
        return None if message.id is None else RefusedMessage(id=message.id, reason=PARKED)

    def add_output(self, chunk: bytes) -> None:
        """Count standard error."""
        self._bytes += len(chunk)

    @property
    def text(self) -> str:
        """The line for the log of the run; empty if nothing was dropped."""
        parts = [f"{count} {name}" for name, count in sorted(self._messages.items())]
        if self._bytes:
            parts.append(f"{self._bytes:,} bytes of output")
        if not parts:
            return ""
        return f"[parked] dropped: {', '.join(parts)}; the run had parked, and stores nothing more"
