"""Checks of `doctor` on servers that others reach: webhooks of pagers, and the web inbox."""

from __future__ import annotations

import json

import pytest

from tests.tui.cli.cli_runner import Cli
from tests.tui.cli.setup.test_doctor import _checks


async def test_a_pager_whose_webhook_is_received_needs_an_account_of_a_person(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAGER", "R0123")
    table = """
[pagers.ops]
format = "pagerduty"
secret = {{ env = "PAGER" }}
listen = "127.0.0.1:0"
webhook_secret = {{ env = "PAGER" }}
{}"""
    kept = cli.config.read_text(encoding="utf-8")
    cli.config.write_text(kept + table.format(""), encoding="utf-8")
    found = (await _checks(cli))["pager ops"]
    assert found["hint"].startswith("draftsman people set NAME --pager ops:USER")
    person = '[people.pat]\npager = "ops:PLH1HKV"\n'
    cli.config.write_text(kept + table.format(person), encoding="utf-8")
    assert "pager ops" not in await _checks(cli)


async def test_a_configured_web_inbox_is_checked(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "web inbox" not in await _checks(cli)
    monkeypatch.setenv("DRAFTSMAN_WEB__LISTEN", "0.0.0.0:8421")
    found = (await _checks(cli))["web inbox"]
    assert (found["status"], "set url" in found["hint"]) == ("fail", True)
    monkeypatch.setenv("DRAFTSMAN_WEB__URL", "https://inbox.example.org")
    assert (await _checks(cli))["web inbox"]["text"] == "https://inbox.example.org"
    monkeypatch.setenv("DRAFTSMAN_WEB__PROXY_HEADER", "X-User")
    assert "trusted_proxies" in (await _checks(cli))["web inbox"]["hint"]
    for trusted in ("127.0.0.1", "127.0.0.0/8", "0.0.0.0/0", "::1"):
        monkeypatch.setenv("DRAFTSMAN_WEB__TRUSTED_PROXIES", json.dumps([trusted]))
        found = (await _checks(cli))["web inbox"]
        assert (found["status"], "proxy_secret" in found["hint"]) == ("warn", True), trusted
    monkeypatch.setenv("DRAFTSMAN_WEB__PROXY_SECRET__ENV", "SECRET")
    assert (await _checks(cli))["web inbox"]["status"] == "ok"
    monkeypatch.delenv("DRAFTSMAN_WEB__PROXY_SECRET__ENV")
    monkeypatch.setenv("DRAFTSMAN_WEB__TRUSTED_PROXIES", '["10.0.0.0/8"]')
    assert (await _checks(cli))["web inbox"]["status"] == "ok"
