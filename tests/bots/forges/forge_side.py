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
from draftsman_testing.fake.faults import Fault
from draftsman_testing.forges.server import FakeForge
from draftsman_testing.forges.world import MENTION
from tests.core.forges.api_contract import FAKES

KINDS: Final = ("github", "gitlab", "gitea")
TARGET: Final = "acme/acme/pay#7"
FILE: Final = re.compile(r"(?s)<details>.*?\n(`{3,})\w*\n(.*)\n\1\n\n</details>")
CODE: Final = re.compile(r"(?s)(`{3,}).*?\1|`[^`\n]*`")
LINK: Final = re.compile(r"\]\(|\]:|<[a-z!](?!-- draftsman )")


class ForgeSide:
    """An issue, its comments and the faults of its forge."""

    invites = "To answer, comment"

    def __init__(self, fake: FakeForge, **table: Any) -> None:
        self.fake = fake
        http = HttpSettings(allow=("127.0.0.1",))
        self.settings = Settings(forges={"acme": fake.settings() | table}, http=http)
        self.channel = ForgeChannel(self.settings)
        self.notify = (f"forge:{TARGET}",)

    def texts(self) -> list[str]:
        """Return the comments without files."""
        return [body for body in self._bodies() if FILE.search(body) is None]

    def _bodies(self) -> list[str]:
        return [note.body for note in self.fake.world.comments()]

    def live(self) -> list[str]:
        """Return mentions, links with a hidden URL, HTML and executed commands."""
        shown = [CODE.sub("", body) for body in self._bodies()]
        found = [item for body in shown for item in (*MENTION.findall(body), *LINK.findall(body))]
        return found + self.fake.world.executed

    def files(self) -> list[bytes]:
        """Return the files in comments."""
        found = [FILE.search(body) for body in self._bodies()]
        return [match[2].encode() for match in found if match is not None]

    def calls(self) -> int:
        """Return the number of calls."""
        return len(self.fake.calls)

    def drop_next_response(self) -> None:
        """Hang up when the next comment is there."""
        self.fake.world.faults.add("comment", Fault.DROP_AFTER)

    def rate_limit_next(self) -> None:
        """Refuse the next comment by the secondary rate limit."""
        self.fake.world.faults.add("comment", Fault("secondary"))

    def reject_file(self) -> None:
        """Refuse comments with a file."""
        self.fake.world.refused = "<details>"

    def revoke(self) -> None:
        """Revoke the token."""
        self.fake.world.token = "revoked"

    def remove_destination(self) -> None:
        """Delete the issue."""
        self.fake.world.issues.clear()

    def delete_status_message(self) -> None:
        """Delete the first comment."""
        self.fake.world.notes.pop(0)


@asynccontextmanager
async def forge_side(
    kind: str, folder: Path, monkeypatch: pytest.MonkeyPatch, **table: Any
) -> AsyncIterator[ForgeSide]:
    """Serve a forge of a kind with an issue."""
    async with FAKES[kind](folder / "forge") as fake:
        monkeypatch.setenv("FORGE_TOKEN", fake.world.token)
        yield ForgeSide(fake, **table)
