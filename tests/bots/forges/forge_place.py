"""An issue of a fake forge of each kind, as the channel and the contracts see it."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from draftsman.settings import Settings
from draftsman.settings.http import HttpSettings
from draftsman_bots.forges.deliveries.channel import ForgeChannel
from draftsman_bots.forges.deliveries.render import marker_of
from draftsman_testing.channel.place import RETRY_AFTER, Fault, Post
from draftsman_testing.fake.faults import Fault as ForgeFault
from draftsman_testing.forges.server import FakeForge, Refused
from draftsman_testing.forges.world import MENTION
from tests.core.forges.api_contract import FAKES

KINDS: Final = ("github", "gitlab", "gitea")
ISSUE: Final = "acme/acme/pay#7"
FILE: Final = re.compile(r"(?s)<details>.*?\n(`{3,})\w*\n(.*)\n\1\n\n</details>")
CODE: Final = re.compile(r"(?s)(`{3,}).*?\1|`[^`\n]*`")
LINK: Final = re.compile(r"\]\(|\]:|<[a-z!](?!-- draftsman )")


class ForgePlace:
    """An issue, its comments and the faults of its forge."""

    finds = True
    faults = frozenset(Fault)
    invites = "To answer, comment"
    missing = "987654321"
    target = f"forge:{ISSUE}"

    def __init__(self, fake: FakeForge, **table: Any) -> None:
        self.fake = fake
        http = HttpSettings(allow=("127.0.0.1",))
        self.settings = Settings(forges={"acme": fake.settings() | table}, http=http)
        self.channel = ForgeChannel(self.settings)

    def posts(self) -> list[Post]:
        bodies = (body for body in self._bodies() if FILE.search(body) is None)
        return [Post(marker_of(body) or "", body) for body in bodies]

    def _bodies(self) -> list[str]:
        return [note.body for note in self.fake.world.comments()]

    def active_markup(self) -> list[str]:
        """Return mentions, links with a hidden URL, HTML and executed commands."""
        shown = [CODE.sub("", body) for body in self._bodies()]
        found = [item for body in shown for item in (*MENTION.findall(body), *LINK.findall(body))]
        return found + self.fake.world.executed

    def files(self) -> list[bytes]:
        found = [FILE.search(body) for body in self._bodies()]
        return [match[2].encode() for match in found if match is not None]

    def calls(self) -> int:
        return len(self.fake.calls)

    async def fail(self, fault: Fault) -> None:
        world = self.fake.world
        match fault:
            case Fault.LOST_REPLY:
                world.faults.add("comment", ForgeFault.DROP_AFTER)
            case Fault.RATE_LIMIT:
                refused = Refused(429, "slow down", {"Retry-After": f"{RETRY_AFTER:.0f}"})
                self.fake.limited = lambda name: refused  # type: ignore[method-assign]
                world.faults.add("comment", ForgeFault("secondary"))
            case Fault.REFUSED:
                world.faults.add("comment", ForgeFault("error", status=400, text="no"))
            case Fault.UNREACHABLE:
                await self.fake.stop()
            case Fault.FILE_REFUSED:
                world.refused = "<details>"
            case Fault.REVOKED:
                world.token = "revoked"
            case Fault.TARGET_GONE:
                world.issues.clear()
            case Fault.STATUS_GONE:
                world.notes.pop(0)


@asynccontextmanager
async def forge_place(
    kind: str, folder: Path, monkeypatch: pytest.MonkeyPatch, **table: Any
) -> AsyncIterator[ForgePlace]:
    """Serve a forge of a kind with an issue."""
    async with FAKES[kind](folder / "forge") as fake:
        monkeypatch.setenv("FORGE_TOKEN", fake.world.token)
        yield ForgePlace(fake, **table)
