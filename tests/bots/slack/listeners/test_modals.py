"""Modals and shortcuts; a modal with errors keeps its input."""

from __future__ import annotations

from typing import Any

import pytest

from draftsman.questions.question_spec import QuestionSpec
from draftsman_bots.slack import ids
from draftsman_bots.slack.home import modal_views
from draftsman_testing.factories import GATE
from tests.bots.slack.listeners.conftest import ANNA, BEN, CAROL, MALLORY, SlackBotHarness

WHY = QuestionSpec(key="why", text="Why?", freeform=True)


async def _opened(bench: SlackBotHarness, user: str) -> dict[str, Any]:
    await bench.ctx.background.idle()
    (view,) = bench.slack.views(user)
    return view


async def _free(bench: SlackBotHarness) -> tuple[Any, dict[str, Any]]:
    question, _, ts = await bench.shown(WHY)
    await bench.slack.press(BEN, bench.general, ts, ids.FREE)
    return question, await _opened(bench, BEN)


async def test_answer_in_free_text(bench: SlackBotHarness) -> None:
    question, view = await _free(bench)
    await bench.slack.submit(BEN, view["id"], {modal_views.TEXT: "because <it> & that"})
    assert await bench.answer(question) == ("because <it> & that", ("ben",))
    assert bench.slack.views(BEN) == []


async def test_a_denial_with_its_reason(bench: SlackBotHarness) -> None:
    question, _, ts = await bench.shown(GATE)
    await bench.slack.press(CAROL, bench.general, ts, ids.DENY)
    view = await _opened(bench, CAROL)
    await bench.slack.submit(CAROL, view["id"], {modal_views.REASON: "too risky"})
    assert ((await bench.question(question)).resolution or {})["reason"] == "too risky"
    assert await bench.answer(question) == ("denied", ("carol",))


async def test_late_modal_shows_an_error_and_keeps_its_text(bench: SlackBotHarness) -> None:
    question, view = await _free(bench)
    await bench.make.answer(question.job, "first", bench.make.owner)
    await bench.slack.submit(BEN, view["id"], {modal_views.TEXT: "a long text"})
    shown = await _opened(bench, BEN)
    refused = f"Your answer was not accepted: {question.name} was already answered by root, "
    assert shown["errors"].keys() == {modal_views.TEXT}
    assert shown["errors"][modal_views.TEXT].startswith(refused)
    assert await bench.answer(question) == ("first", ("root",))


@pytest.mark.parametrize("text", [None, "", "   "])
async def test_empty_answer_is_a_field_error(bench: SlackBotHarness, text: str | None) -> None:
    question, view = await _free(bench)
    payload = {modal_views.TEXT: text} if text else {}
    await bench.slack.submit(BEN, view["id"], payload)
    shown = await _opened(bench, BEN)
    assert shown["errors"] == {modal_views.TEXT: "Enter an answer."}
    assert await bench.is_open(question)


async def test_denial_without_a_reason_is_accepted(bench: SlackBotHarness) -> None:
    question, _, ts = await bench.shown(GATE)
    await bench.slack.press(CAROL, bench.general, ts, ids.DENY)
    view = await _opened(bench, CAROL)
    await bench.slack.submit(CAROL, view["id"])
    assert await bench.answer(question) == ("denied", ("carol",))


async def test_closed_modal_changes_nothing(bench: SlackBotHarness) -> None:
    question, view = await _free(bench)
    await bench.slack.close_view(BEN, view["id"])
    closed = {"type": "view_closed", "user": {"id": BEN, "team_id": bench.slack.team}}
    closed |= {"team": {"id": bench.slack.team}, "view": view | {"type": "modal"}}
    assert (await bench.slack.interactive(closed)).acked
    assert await bench.is_open(question)


async def test_shortcut_opens_the_modal_of_a_new_job(bench: SlackBotHarness) -> None:
    await bench.slack.shortcut(ANNA, ids.NEW_JOB)
    view = await _opened(bench, ANNA)
    values = {modal_views.TEXT: "the parser", modal_views.MODE: "investigate"}
    await bench.slack.submit(ANNA, view["id"], values, copies=2)
    (job,) = await bench.rt.read_model.jobs()
    full = await bench.rt.read_model.job(job.number)
    assert (full.agent_request.text, full.agent_request.mode, full.idempotency_key) == (
        "the parser", "investigate", f"slack:view:{view['id']}",
    )  # fmt: skip
    (target,) = await bench.rt.outbox.targets(job.number)
    assert (target.target, target.thread) == (ANNA, None)


async def test_message_creates_a_job_with_updates_in_its_thread(bench: SlackBotHarness) -> None:
    ack = await bench.slack.say(BEN, bench.general, "it &lt;fails&gt;")
    await bench.slack.message_shortcut(ANNA, bench.general, ack.ts, ids.FROM_MESSAGE)
    view = await _opened(bench, ANNA)
    await bench.slack.submit(ANNA, view["id"])
    assert await bench.jobs() == ["it <fails>"]
    (target,) = await bench.rt.outbox.targets(1)
    assert (target.target, target.thread) == (bench.general, ack.ts)


async def test_invalid_repository_is_a_field_error(
    bench: SlackBotHarness,
) -> None:
    await bench.slack.shortcut(ANNA, ids.NEW_JOB)
    view = await _opened(bench, ANNA)
    await bench.slack.submit(ANNA, view["id"], {modal_views.TEXT: "it", modal_views.REPO: "ours"})
    ((field, text),) = (await _opened(bench, ANNA))["errors"].items()
    assert (field, "use a URL" in text) == (modal_views.REPO, True)
    assert await bench.jobs() == []


async def test_modal_from_a_channel_that_is_not_allowed_shows_no_ids(
    bench: SlackBotHarness,
) -> None:
    ack = await bench.slack.say(BEN, bench.general, "it fails")
    bench.limit(channels=("C0ELSEWHERE",))
    await bench.slack.message_shortcut(ANNA, bench.general, ack.ts, ids.FROM_MESSAGE)
    view = await _opened(bench, ANNA)
    await bench.slack.submit(ANNA, view["id"])
    (error,) = (await _opened(bench, ANNA))["errors"].values()
    assert error.startswith("I don't take requests in the channel where this was opened.")


async def test_refused_new_job_shows_the_error_in_its_modal(bench: SlackBotHarness) -> None:
    await bench.slack.shortcut(MALLORY, ids.NEW_JOB)
    view = await _opened(bench, MALLORY)
    await bench.slack.submit(MALLORY, view["id"], {modal_views.TEXT: "it"})
    (error,) = (await _opened(bench, MALLORY))["errors"].values()
    assert "is not linked to a person" in error
    assert await bench.jobs() == []


async def test_person_without_a_reported_name_is_shown_no_id(bench: SlackBotHarness) -> None:
    gate, _, ts = await bench.shown(GATE)
    nameless = {"user": {"id": MALLORY, "team_id": bench.slack.team}}
    await bench.slack.press(MALLORY, bench.general, ts, ids.APPROVE, extra=nameless)
    (text,) = await bench.ephemeral_texts(MALLORY)
    assert text.startswith(f"Your answer was not accepted: <@{MALLORY}> may not approve")
    await bench.slack.press(MALLORY, bench.general, ts, ids.DENY, extra=nameless)
    view = await _opened(bench, MALLORY)
    await bench.slack.submit(MALLORY, view["id"], extra=nameless)
    (error,) = (await _opened(bench, MALLORY))["errors"].values()
    assert error.startswith("Your answer was not accepted: you may not approve")
    assert await bench.is_open(gate)
