"""The doctor's Slack checks: tokens, scopes, Socket Mode, channels, clock."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from email.utils import formatdate
from typing import Any

import pytest

from draftsman.settings import settings_model
from draftsman_bots.slack import doctor, scopes
from draftsman_testing.slack import FakeSlack
from tests.bots.slack.transport.service_harness import ANNA
from tests.support.cases import cases


@pytest.fixture
async def slack(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[FakeSlack]:
    async with FakeSlack() as slack:
        slack.user("anna", id=ANNA)
        slack.world.scopes = set(scopes.FULL)
        monkeypatch.setenv("BOT", slack.bot_token)
        monkeypatch.setenv("APP", slack.app_token)
        yield slack


async def look(slack: FakeSlack, **more: Any) -> list[tuple[str, str]]:
    tokens = {"bot_token": {"env": "BOT"}, "app_token": {"env": "APP"}}
    table = tokens | {"api_url": slack.api_url} | more
    settings = settings_model().model_validate({"slack": table})
    return [(check.status, check.text) async for check in doctor.checks(settings, None)]


async def test_valid_configuration_passes_all_checks(slack: FakeSlack) -> None:
    general = slack.channel("general", [ANNA])
    checks = await look(slack, channels=[general], team=slack.team)
    assert [status for status, _ in checks] == ["ok"] * 5
    unseen = [text for _, text in checks if text.startswith("not checked, because")]
    assert len(unseen) == 1
    assert "command /draftsman" in unseen[0]
    assert "config/slack_manifest.*.yaml" in unseen[0]
    assert checks[-1] == ("ok", f"the bot is in #general ({general})")


async def test_token_rejected_by_slack_is_reported(slack: FakeSlack) -> None:
    slack.revoke("token_revoked")
    assert await look(slack) == [("fail", "Slack rejected the bot token: token_revoked")]


async def test_token_of_another_workspace_is_reported(slack: FakeSlack) -> None:
    checks = await look(slack, team="TOTHER")
    assert checks[0][0] == "fail"
    assert "[slack] team is TOTHER" in checks[0][1]


@pytest.mark.parametrize(
    ("granted", "status", "part"),
    [
        (set(scopes.MINIMAL), "ok", "minimal scopes"),
        (set(scopes.FULL) - {"chat:write"}, "fail", "missing scopes: chat:write"),
        (set(scopes.FULL) - {"groups:history"}, "warn", "missing scopes: groups:history"),
        ({*scopes.FULL, "admin"}, "warn", "unused scopes: admin"),
    ],
)
async def test_missing_or_additional_scopes_are_reported(
    slack: FakeSlack, granted: set[str], status: str, part: str
) -> None:
    slack.world.scopes = granted
    assert [check for check in await look(slack) if check[0] == status and part in check[1]]


async def test_failing_socket_mode_is_reported(slack: FakeSlack) -> None:
    slack.world.app_token = "xapp-another"
    assert ("fail", "cannot open a Socket Mode connection: invalid_auth") in await look(slack)


async def test_a_channel_without_the_bot(slack: FakeSlack) -> None:
    other = slack.channel("other", [ANNA], bot=False)
    old = slack.channel("old", [ANNA], archived=True)
    checks = await look(slack, channels=[other, old, "CNONE"])
    assert [item for item in checks if item[0] == "warn"] == [
        ("warn", f"the bot is not in #other ({other})"),
        ("warn", f"#old ({old}) is archived"),
        ("warn", "channel CNONE: channel_not_found"),
    ]


@cases(("ahead", "direction"), [(-600, "behind"), (600, "ahead of")])
def test_doctor_reports_clock_skew(ahead: int, direction: str) -> None:
    now = time.time()
    headers = {"Date": formatdate(now, usegmt=True)}
    [checks] = doctor.clock(headers, int(now) + ahead)
    assert checks.status == "fail"
    assert checks.text == f"clock skew: this machine's clock is 10 min {direction} Slack's"
    assert doctor.clock(headers, now) == doctor.clock({}, now) == []


async def test_unreachable_slack_or_missing_token_is_reported(
    slack: FakeSlack, monkeypatch: pytest.MonkeyPatch
) -> None:
    slack.world.base = "http://127.0.0.1:9"
    assert await look(slack) == [("fail", "cannot reach Slack: ClientConnectorError")]
    monkeypatch.delenv("BOT")
    [(status, text)] = await look(slack)
    assert status == "fail"
    assert "BOT holds no secret" in text
