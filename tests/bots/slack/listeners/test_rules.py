"""Proposed permission rules in Slack: a message, and buttons for operators."""

from __future__ import annotations

from typing import Any

import pytest

from draftsman.deliveries.target import rules_target
from draftsman.errors import ConfigError
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.questions.permission_rules.permission_rule import RuleStatus
from draftsman.settings.questions import RuleSettings
from draftsman_bots.slack import ids
from draftsman_testing.people import People
from tests.bots.slack.listeners.conftest import ANNA, Seen, SlackBotHarness
from tests.support.permissions import ALLOW, decided

FIVE = [f"pytest tests/test_{name}.py" for name in "abcde"]


def notify(bench: SlackBotHarness, **fields: object) -> None:
    """Post proposed rules in the general channel."""
    rules = RuleSettings.model_validate({"notify": f"slack:{bench.general}"} | fields)
    settings = bench.rt.settings.model_copy(update={"rules": rules})
    object.__setattr__(bench.rt, "settings", settings)
    bench.rt.__dict__.pop("rules", None)


@pytest.fixture
async def proposed(bench: SlackBotHarness, people: People, seen: Seen) -> dict[str, Any]:
    """Propose a rule in the general channel; return its message."""
    notify(bench)
    await decided(bench.rt, bench.make, FIVE, ALLOW, people.ben)
    assert await bench.rt.rules.sweep(LeaderTerm()) == 1
    return await seen(bench.general, None, "is proposed for git.example.org/acme/shop")


async def status(bench: SlackBotHarness) -> RuleStatus:
    (rule,) = await bench.rt.rules.all()
    return rule.status


async def press(bench: SlackBotHarness, user: str, message: dict[str, Any], action: str) -> None:
    await bench.slack.press(user, bench.general, message["ts"], action)
    await bench.ctx.background.idle()


async def test_a_proposed_rule_is_posted_once(
    bench: SlackBotHarness, proposed: dict[str, Any]
) -> None:
    assert await bench.rt.rules.sweep(LeaderTerm()) == 0
    posted = [item for item in bench.slack.messages(bench.general) if "is proposed" in str(item)]
    assert len(posted) == 1
    assert "pytest tests/<!date^00000000^{_}|*>" in str(proposed["blocks"])
    assert "People have allowed 5 matching commands" in str(proposed["blocks"])
    assert await status(bench) is RuleStatus.PROPOSED


async def test_a_rule_of_a_person_is_posted_once_with_buttons(
    bench: SlackBotHarness, people: People, seen: Seen
) -> None:
    notify(bench, propose_after=0)
    ratified = await bench.rt.rules.propose("acme/wiki", "make check", people.olga)
    await bench.rt.rules.ratify(ratified.id, people.olga)
    rule = await bench.rt.rules.propose("acme/wiki", "pytest tests/**", people.olga)
    assert await bench.rt.rules.sweep(LeaderTerm()) == 0, "no job carries the message"
    await bench.make.queued()
    for _ in range(2):
        assert await bench.rt.rules.sweep(LeaderTerm()) == 0
    message = await seen(bench.general, None, "is proposed by olga for acme/wiki")
    assert "People have allowed no matching commands" in str(message["blocks"])
    posted = [item for item in bench.slack.messages(bench.general) if "is proposed" in str(item)]
    assert len(posted) == 1
    await press(bench, await bench.linked("olga"), message, ids.RATIFY_RULE)
    assert (await bench.rt.rules.get(rule.id)).status is RuleStatus.ACTIVE


async def test_an_operator_ratifies_the_rule_once(
    bench: SlackBotHarness, proposed: dict[str, Any]
) -> None:
    olga = await bench.linked("olga")
    await press(bench, olga, proposed, ids.RATIFY_RULE)
    (rule,) = await bench.rt.rules.all()
    assert (rule.status, rule.ratified_by) == (RuleStatus.ACTIVE, "olga")
    message = bench.slack.world.channels[bench.general].messages[proposed["ts"]]
    assert "ratified by olga: allows " in str(message["blocks"])
    assert ids.DECLINE_RULE not in str(message["blocks"])


async def test_an_operator_declines_the_rule(
    bench: SlackBotHarness, proposed: dict[str, Any]
) -> None:
    olga = await bench.linked("olga")
    again = dict(bench.slack.world.channels[bench.general].messages[proposed["ts"]])
    await press(bench, olga, proposed, ids.DECLINE_RULE)
    assert await status(bench) is RuleStatus.REVOKED
    bench.slack.world.channels[bench.general].messages[proposed["ts"]] = again
    await press(bench, olga, proposed, ids.RATIFY_RULE)  # on an old copy of the message
    assert await status(bench) is RuleStatus.REVOKED
    assert "is revoked: declined in Slack" in (await bench.ephemeral_texts(olga))[-1]


async def test_other_people_cannot_decide_on_a_rule(
    bench: SlackBotHarness, proposed: dict[str, Any]
) -> None:
    await press(bench, ANNA, proposed, ids.RATIFY_RULE)
    assert await status(bench) is RuleStatus.PROPOSED
    assert "may not change rules" in (await bench.ephemeral_texts(ANNA))[0]


def test_the_target_of_proposals_is_checked(bench: SlackBotHarness) -> None:
    rules = RuleSettings.model_validate({"notify": "fax:1"})
    with pytest.raises(ConfigError, match="rules: notify"):
        rules_target(bench.rt.settings.model_copy(update={"rules": rules}))
