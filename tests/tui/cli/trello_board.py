"""A Trello board and a command line that is configured for it."""

from __future__ import annotations

from typing import Any

import pytest

from draftsman_testing.trello import FakeTrello
from tests.tui.cli.cli_runner import Cli, Result


class CliBoard:
    """A board, and commands about it."""

    def __init__(self, trello: FakeTrello, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
        self.trello = trello
        self.cli = cli
        self.anna = trello.member("Anna Berg")
        self.board = trello.board("Work", [self.anna])
        self.url = trello.board_url(self.board)
        self.todo, self.doing, self.review = (
            trello.list(self.board, name) for name in ("To do", "Doing", "Review")
        )
        self.label = trello.label(self.board, "draftsman")
        self.queued = trello.label(self.board, "draftsman: queued", "blue")
        self.bug = trello.label(self.board, "bug", "red")
        for name in ("key", "token", "secret"):
            monkeypatch.setenv(f"T_{name.upper()}", getattr(trello, name))
        self.configure()

    def configure(self, **more: Any) -> None:
        """Rewrite the [trello] table."""
        text = self.cli.config.read_text(encoding="utf-8").partition("\ntrello.")[0]
        fields = {"api_url": self.trello.api_url, **more}
        lines = [f'trello.{key} = "{value}"' for key, value in fields.items()]
        lines += [f'trello.{name} = {{ env = "T_{name.upper()}" }}' for name in ("key", "token")]
        lines += ['trello.secret = { env = "T_SECRET" }']
        self.cli.config.write_text("\n".join([text, *lines]), encoding="utf-8")

    async def __call__(self, *args: object) -> Result:
        """Run a command of `boards`."""
        return await self.cli("boards", *args)

    async def added(self, *args: object) -> dict[str, Any]:
        """Watch the board; return its configuration."""
        document: dict[str, Any] = (await self("add", self.url, *args, "--json")).json
        return document

    @property
    def writes(self) -> list[str]:
        """Requests to Trello that change data."""
        return [f"{call.method} {call.path}" for call in self.trello.calls if call.method != "GET"]
