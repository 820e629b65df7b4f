"""The page about channels names every part of their declaration, and every contract."""

from __future__ import annotations

import inspect
from dataclasses import fields

import pytest

from draftsman.channels.plugin import ChannelFacts, ChannelPlugin, TargetSyntax
from draftsman.deliveries.channel import Channel
from draftsman_testing.channel import (
    channel_contract,
    conversation_contract,
    delivery_contract,
    live_contract,
)
from tests.docs.pages import DOCS

PAGE = (DOCS / "channels.md").read_text("utf-8")
CONTRACTS = (channel_contract, delivery_contract, live_contract, conversation_contract)


@pytest.mark.parametrize("declaration", [ChannelPlugin, ChannelFacts, TargetSyntax])
def test_the_page_has_every_field(declaration: type) -> None:
    names = [field.name for field in fields(declaration)]
    assert [name for name in names if f"`{name}`" not in PAGE] == []


def test_the_page_has_every_call_of_a_channel() -> None:
    calls = [name for name, _ in inspect.getmembers(Channel, inspect.isfunction) if name[0] != "_"]
    assert [name for name in calls if f"`{name}`" not in PAGE] == []
    assert "send" in calls


def test_the_page_has_every_contract() -> None:
    names = [name for module in CONTRACTS for name in vars(module) if name.endswith("Contract")]
    assert len(names) == len(CONTRACTS)
    assert [name for name in names if f"`{name}`" not in PAGE] == []
