"""Environment variables of another app have no effect."""

from __future__ import annotations

import os

import pytest
from slack_sdk.web.async_client import AsyncWebClient

from draftsman_bots.slack.identity import Identity
from draftsman_bots.slack.transport.dispatcher import build
from tests.bots.slack.transport.test_process import ANOTHERS


async def test_bolt_reads_no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in ANOTHERS.items():
        monkeypatch.setenv(name, value)
    app = build(AsyncWebClient("xoxb-ours"), Identity(), lambda app: None)
    assert app.oauth_flow is None
    assert app.installation_store is None
    assert app.client.token == "xoxb-ours"
    assert "another" not in str(vars(app))
    assert {name: os.environ[name] for name in ANOTHERS} == ANOTHERS, "others may want it"
