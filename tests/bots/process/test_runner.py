"""Each chat service that the command line offers has its own bot."""

from __future__ import annotations

from importlib import import_module
from types import SimpleNamespace
from typing import Any, cast

import pytest

from draftsman_bots.process import runner
from draftsman_tui.cli.processes.serve import CHATS


def test_each_chat_has_a_bot() -> None:
    assert set(runner.BOTS) == set(CHATS)


@pytest.mark.parametrize("name", ["slack", "trello"])
def test_a_bot_is_created_with_its_own_settings(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def create(rt: Any, settings: str, tokens: str) -> tuple[str, str]:
        return settings, tokens

    package = f"draftsman_bots.{name}"
    monkeypatch.setattr(import_module(f"{package}.service"), "Service", create)
    monkeypatch.setattr(import_module(f"{package}.credentials"), "read", lambda settings: name)
    settings = SimpleNamespace(slack="slack", trello="trello")
    bot = runner.BOTS[name](cast(Any, SimpleNamespace(settings=settings)))
    assert cast(Any, bot) == (name, name)
