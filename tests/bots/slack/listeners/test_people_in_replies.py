"""People in replies, displayed as Slack displays them whatever the text around them."""

from __future__ import annotations

import re

from draftsman_bots.slack import ids
from draftsman_testing.factories import GATE
from tests.bots.slack.listeners.conftest import BEN, MALLORY, SlackBotHarness


async def test_the_reader_of_a_refusal_is_mentioned(bench: SlackBotHarness) -> None:
    _, root = await bench.asked()
    await bench.slack.say(MALLORY, bench.general, "blue", root)
    (text,) = await bench.ephemeral_texts(MALLORY)
    assert re.findall(rf".{{2}}{MALLORY}.?", text) == [f"<@{MALLORY}>"]


async def test_a_late_reply_names_the_terminal_user_who_was_first(bench: SlackBotHarness) -> None:
    question, root = await bench.asked()
    await bench.rt.job_control.cancel(question.job, bench.make.owner)
    await bench.slack.say(BEN, bench.general, "blue", root)
    (text,) = await bench.ephemeral_texts(BEN)
    assert "root (in a terminal)" in text
    assert "cli:root" not in text


async def test_the_reader_of_a_refusal_in_a_modal_is_addressed(bench: SlackBotHarness) -> None:
    _, _, ts = await bench.shown(GATE)
    nameless = {"user": {"id": MALLORY, "team_id": bench.slack.team}}
    await bench.slack.press(MALLORY, bench.general, ts, ids.DENY, extra=nameless)
    await bench.ctx.background.idle()
    (view,) = bench.slack.views(MALLORY)
    await bench.slack.submit(MALLORY, view["id"], extra=nameless)
    (view,) = bench.slack.views(MALLORY)
    (error,) = view["errors"].values()
    assert error.startswith("Your answer was not accepted: you may")
    assert MALLORY not in error
