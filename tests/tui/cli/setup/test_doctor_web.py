"""Checks of `doctor` by channels: webhooks of pagers, the web inbox, and other packages."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.distributions import Distribution, installed
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
    found = (await _checks(cli))["pagers"]
    assert found["hint"].startswith("draftsman people set NAME --account pager:ops:USER")
    person = '[people.pat]\npager = "ops:PLH1HKV"\n'
    cli.config.write_text(kept + table.format(person), encoding="utf-8")
    assert "pagers" not in await _checks(cli)
    monkeypatch.delenv("PAGER")
    text = (await _checks(cli))["pager"]["text"]
    assert text == "pager 'ops': the variable PAGER holds no secret on this worker"


POST = """
from draftsman.channels.plugin import ChannelPlugin
from draftsman_bots.process.checks import Check

CHANNEL = ChannelPlugin(
    name="post", label="Post", missing=lambda settings, target: None, doctor="acme_post:checks"
)

async def checks(settings, rt):
    yield Check("ok", f"a server, {rt is not None}")
    raise LookupError("no answer")
"""


async def test_checks_of_a_package_and_its_mistakes_are_reported(cli: Cli, tmp_path: Path) -> None:
    post = Distribution("acme-post", "1.2", {"post": "acme_post:CHANNEL"}, {"acme_post": POST})
    fax = Distribution("acme-fax", "0.1", {"fax": "acme_fax:CHANNEL"}, {"acme_fax": "1 / 0"})
    with installed(tmp_path / "packages", post, fax):
        document = json.loads((await cli("doctor", "--json")).out)["checks"]
    found = [check for check in document if check["name"] in ("post", "package acme-fax")]
    assert [(check["status"], check["text"].partition(" failed")[0]) for check in found] == [
        ("ok", "a server, True"),
        ("fail", "the checks of channel 'post' of acme-post 1.2"),
        (
            "fail",
            "channel 'fax' of acme-fax 0.1 cannot be loaded: ZeroDivisionError: division by zero",
        ),
    ]


async def test_a_configured_web_inbox_is_checked(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "web" not in await _checks(cli)
    monkeypatch.setenv("DRAFTSMAN_WEB__LISTEN", "0.0.0.0:8421")
    found = (await _checks(cli))["web"]
    assert (found["status"], "set url" in found["hint"]) == ("fail", True)
    monkeypatch.setenv("DRAFTSMAN_WEB__URL", "https://inbox.example.org")
    assert (await _checks(cli))["web"]["text"] == "https://inbox.example.org"
    monkeypatch.setenv("DRAFTSMAN_WEB__PROXY_HEADER", "X-User")
    assert "trusted_proxies" in (await _checks(cli))["web"]["hint"]
    for trusted in ("127.0.0.1", "127.0.0.0/8", "0.0.0.0/0", "::1"):
        monkeypatch.setenv("DRAFTSMAN_WEB__TRUSTED_PROXIES", json.dumps([trusted]))
        found = (await _checks(cli))["web"]
        assert (found["status"], "proxy_secret" in found["hint"]) == ("warn", True), trusted
    monkeypatch.setenv("DRAFTSMAN_WEB__PROXY_SECRET__ENV", "SECRET")
    assert (await _checks(cli))["web"]["status"] == "ok"
    monkeypatch.delenv("DRAFTSMAN_WEB__PROXY_SECRET__ENV")
    monkeypatch.setenv("DRAFTSMAN_WEB__TRUSTED_PROXIES", '["10.0.0.0/8"]')
    assert (await _checks(cli))["web"]["status"] == "ok"
