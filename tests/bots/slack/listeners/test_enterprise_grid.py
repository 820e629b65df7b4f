"""Colleagues in other workspaces of an Enterprise Grid: identified as configured."""

from __future__ import annotations

import pytest

from draftsman_bots.slack import ids
from draftsman_bots.slack.home import modal_views
from draftsman_testing.factories import GATE, QUESTION
from tests.bots.slack.listeners.conftest import ANNA, BEN, CAROL, DAVE, MENTIONS, SlackBotHarness

GRID = "E0OURS"
SISTER = "T0SISTER"
FOREIGN = "T0FOREIGN"
OTHERS = "E0OTHERS"


@pytest.fixture
def grid(bench: SlackBotHarness) -> SlackBotHarness:
    """Put the workspace into a Grid with another workspace, of Anna, Ben and Carol."""
    bench.slack.world.enterprise = bench.ctx.identity.enterprise = GRID
    for id in (ANNA, BEN, CAROL):
        bench.slack.user(id.removeprefix("U").lower(), id=id, team=SISTER, enterprise=GRID)
    return bench


def _foreign(bench: SlackBotHarness, id: str, enterprise: str | None = None) -> None:
    """Assign an id to a member of another company."""
    bench.slack.user("eve", id=id, team=FOREIGN, enterprise=enterprise)


async def _deny(bench: SlackBotHarness, ts: str) -> None:
    """Deny as Carol in the modal that the message's button opens."""
    await bench.slack.press(CAROL, bench.general, ts, ids.DENY)
    await bench.ctx.background.idle()
    (view,) = bench.slack.views(CAROL)
    await bench.slack.submit(CAROL, view["id"])


def _asked(bench: SlackBotHarness) -> int:
    return [call.method for call in bench.slack.calls].count("conversations.info")


@pytest.mark.parametrize("events", [MENTIONS, MENTIONS | {"message.channels"}])
async def test_mention_by_a_colleague_creates_one_job_in_their_name(
    grid: SlackBotHarness, events: set[str]
) -> None:
    grid.slack.subscribed = events
    await grid.slack.mention(ANNA, grid.general, "fix it", copies=2)
    assert await grid.jobs() == ["it"]
    [job] = await grid.rt.read_model.jobs()
    assert (await grid.rt.read_model.job(job.number)).invoker_id == "anna"
    ack = await grid.slack.command(ANNA, grid.general, "fix that")
    assert "is queued" in ack.body["text"]


async def test_reply_by_a_colleague_is_an_answer_also_in_a_shared_channel(
    grid: SlackBotHarness,
) -> None:
    for shared in (False, True):
        grid.slack.world.channels[grid.general].shared = shared
        question, root = await grid.asked(QUESTION)
        await grid.slack.say(BEN, grid.general, "blue", root)
        assert await grid.answer(question) == ("blue", ("ben",))


async def test_button_press_by_a_colleague_counts_after_one_lookup(grid: SlackBotHarness) -> None:
    question, _, ts = await grid.shown()
    await grid.slack.press(BEN, grid.general, ts, "blue")
    assert await grid.answer(question) == ("blue", ("ben",))
    gate, _, gate_ts = await grid.shown(GATE)
    await _deny(grid, gate_ts)
    assert await grid.answer(gate) == ("denied", ("carol",))
    assert _asked(grid) == 1


async def test_modals_work_as_the_first_interaction_of_a_colleague(
    grid: SlackBotHarness,
) -> None:
    gate, _, ts = await grid.shown(GATE)
    await _deny(grid, ts)
    assert await grid.answer(gate) == ("denied", ("carol",))
    ack = await grid.slack.say(ANNA, grid.general, "it fails")
    await grid.slack.message_shortcut(ANNA, grid.general, ack.ts, ids.FROM_MESSAGE)
    await grid.ctx.background.idle()
    (view,) = grid.slack.views(ANNA)
    await grid.slack.submit(ANNA, view["id"])
    assert (await grid.jobs())[1:] == ["it fails"]


async def test_colleague_of_another_workspace_may_approve_in_a_direct_message(
    grid: SlackBotHarness,
) -> None:
    gate, _, ts = await grid.shown(GATE)
    direct = grid.slack.direct(CAROL)
    blocks = [m for m in grid.slack.messages(grid.general, gate_root(grid, ts)) if m["ts"] == ts]
    copy = await grid.ctx.client.chat_postMessage(
        channel=direct, text="copy", blocks=blocks[0]["blocks"]
    )
    await grid.slack.press(CAROL, direct, copy["ts"], ids.APPROVE)
    assert await grid.answer(gate) == ("approved", ("carol",))


def gate_root(bench: SlackBotHarness, ts: str) -> str:
    """Return the thread of a message."""
    return str(bench.slack.world.channels[bench.general].messages[ts]["thread_ts"])


@pytest.mark.parametrize("enterprise", [None, OTHERS])
async def test_same_id_in_another_company_is_another_person(
    grid: SlackBotHarness, enterprise: str | None
) -> None:
    grid.slack.world.channels[grid.general].shared = True
    gate, root, ts = await grid.shown(GATE)
    _foreign(grid, DAVE, enterprise)
    await grid.slack.press(DAVE, grid.general, ts, ids.APPROVE)
    await grid.slack.say(DAVE, grid.general, "approve", root)
    await grid.slack.mention(DAVE, grid.general, "approve", root)
    assert await grid.is_open(gate)
    (noted,) = await grid.job_events(gate, "answer_refused")
    assert noted["voter"] == f"slack:{DAVE}@{FOREIGN}"
    assert all("another workspace" in text for text in await grid.ephemeral_texts(DAVE))


async def test_press_by_an_unknown_workspace_explains_how_to_verify_it(
    grid: SlackBotHarness,
) -> None:
    grid.slack.world.scopes -= {"channels:read"}
    question, _, ts = await grid.shown()
    await grid.slack.shortcut(ANNA, ids.NEW_JOB)
    await grid.ctx.background.idle()
    (view,) = grid.slack.views(ANNA)
    await grid.slack.submit(ANNA, view["id"], {modal_views.TEXT: "it"})
    assert "send /draftsman help" in grid.slack.views(ANNA)[0]["errors"][modal_views.TEXT]
    await grid.slack.press(BEN, grid.general, ts, "blue")
    (text,) = await grid.ephemeral_texts(BEN)
    assert text.endswith("if it belongs to the same organization, send /draftsman help")
    assert await grid.is_open(question)
    await grid.slack.command(BEN, grid.general, "help")
    await grid.slack.press(BEN, grid.general, ts, "blue")
    assert await grid.answer(question) == ("blue", ("ben",))
