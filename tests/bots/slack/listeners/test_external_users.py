"""Members of other workspaces: denied by default, and never mistaken for a member."""

from __future__ import annotations

import pytest

from draftsman.settings import Settings
from draftsman.settings.channel_tables import person_model
from draftsman_bots.slack import ids
from draftsman_testing.factories import GATE
from tests.bots.slack.channel_fixtures import actionable, shown
from tests.bots.slack.listeners.conftest import ANNA, CAROL, SlackBotHarness

EVE = "UEVE@T0ELSEWHERE"
"""Her account in the configuration."""


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """Add a person of another workspace to the people of the tests."""
    person = {"slack": EVE, "roles": ["invoker", "responder", "approver"]}
    eve = person_model(type(settings)).model_validate(person)
    return settings.model_copy(update={"people": {**settings.people, "eve": eve}})


async def test_same_user_id_in_another_workspace_is_another_person(
    bench: SlackBotHarness,
) -> None:
    bench.limit(external_users=True)
    question, _, ts = await bench.shown(GATE)
    elsewhere = {"user": {"id": CAROL, "name": "carol", "team_id": "T0ELSEWHERE"}}
    await bench.slack.press(CAROL, bench.general, ts, ids.APPROVE, extra=elsewhere)
    assert await bench.is_open(question)
    (noted,) = await bench.job_events(question, "answer_refused")
    assert noted["voter"] == f"slack:{CAROL}@T0ELSEWHERE"
    await bench.slack.press(CAROL, bench.general, ts, ids.APPROVE)
    assert await bench.answer(question) == ("approved", ("carol",))


async def test_admitted_external_user_is_identified_by_workspace(
    bench: SlackBotHarness,
) -> None:
    eve = bench.stranger("UEVE")
    await bench.slack.mention(eve, bench.general, "fix it")
    assert "another workspace" in (await bench.ephemeral_texts(eve))[0]
    bench.limit(external_users=True)
    await bench.slack.mention(eve, bench.general, "fix this")
    assert await bench.jobs() == ["this"]
    [
        job
    ] = await bench.rt.read_model.jobs()  # of the two events of a mention, either takes a number
    assert (await bench.rt.read_model.job(job.number)).invoker_id == "eve"


async def test_external_user_gets_no_modal_and_no_link_code(
    bench: SlackBotHarness,
) -> None:
    eve = bench.stranger("UEVE")
    ack = await bench.slack.say(ANNA, bench.general, "look at that")
    await bench.slack.message_shortcut(eve, bench.general, ack.ts, ids.FROM_MESSAGE)
    await bench.slack.shortcut(eve, ids.NEW_JOB)
    await bench.slack.open_home(eve)
    ack = await bench.slack.command(eve, bench.general, "link")
    ephemeral_texts = await bench.ephemeral_texts(eve)
    assert len(ephemeral_texts) == 2, "of the message's shortcut, and of the command"
    (direct,) = bench.slack.messages(bench.slack.direct(eve))
    home = bench.slack.home(eve)
    assert home is not None
    assert "as a member of this workspace, send" in shown(home), "it is not known whose she is"
    await bench.slack.press_in_view(eve, home["id"], ids.REFRESH)
    await bench.ctx.background.idle()
    home = bench.slack.home(eve)
    assert home is not None
    for text in (*ephemeral_texts, direct["text"], shown(home), ack.body["text"]):
        assert "another workspace" in text
        assert "link" not in text
    assert actionable(home) == [ids.REFRESH]
    assert bench.slack.views(eve) == []


async def test_home_workspace_comes_from_the_bot_identity(
    bench: SlackBotHarness,
) -> None:
    """A command's payload names no workspace but its author's."""
    ack = await bench.slack.command(ANNA, bench.general, "fix it", extra={"team_id": "T0OTHER"})
    assert "another workspace" in ack.body["text"]
    assert await bench.jobs() == []
    bench.ctx.identity.enterprise = "E0OURS"
    ours = {"team_id": "E0OURS", "enterprise_id": "E0OURS"}
    await bench.slack.command(ANNA, bench.general, "fix this", extra=ours)
    assert await bench.jobs() == ["this"]


async def test_organization_install_without_a_workspace_is_internal(
    bench: SlackBotHarness,
) -> None:
    bench.ctx.identity.team = bench.ctx.identity.enterprise = "E0OURS"
    question, _, ts = await bench.shown(GATE)
    organization = {"team": None, "enterprise": {"id": "E0OURS"}, "is_enterprise_install": True}
    await bench.slack.press(CAROL, bench.general, ts, ids.APPROVE, extra=organization)
    assert await bench.answer(question) == ("approved", ("carol",))
