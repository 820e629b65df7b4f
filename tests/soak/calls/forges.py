"""Calls about events of forges and the pull requests of jobs."""

from __future__ import annotations

from typing import Final

from draftsman.domain.forges.forge_event import EventKind, ForgeEvent
from draftsman.store.forges import forge_events
from tests.soak.calls.call import Call

EVENT: Final = ForgeEvent(EventKind.COMMENT, "acme/pay", 1, "comment:1:a", author="anna")
CALLS: Final[dict[str, Call]] = {
    "forge_events.receive": Call(lambda conn: forge_events.receive(conn, "github", [EVENT])),
    "forge_events.open_pulls": Call(lambda conn: forge_events.open_pulls(conn, "github")),
}
