"""Buttons and selects: the first valid answer wins, and later ones get the reason."""

from __future__ import annotations

import asyncio

from draftsman.people.actor import Actor
from draftsman.questions.question_spec import QuestionSpec
from draftsman.questions.response import Response
from draftsman_bots.slack import ids
from draftsman_bots.slack.deliveries.blocks import actions, button
from draftsman_bots.slack.home import modal_views
from draftsman_testing.factories import GATE, REVIEW, Factory
from draftsman_testing.people import People
from draftsman_testing.slack import Fault, error
from tests.bots.slack.listeners.conftest import ANNA, BEN, CAROL, DAVE, MALLORY, SlackBotHarness

MANY = QuestionSpec(key="many", text="Which?", choices=tuple(f"choice {n}" for n in range(1, 251)))
LONG = QuestionSpec.model_validate({
    "key": "long",
    "text": "Which?",
    "choices": [
        {"value": f"{n}" * 150, "label": f"label {n} ".ljust(75, "x")} for n in range(1, 8)
    ],
})  # fmt: skip


async def test_a_button_answers(bench: SlackBotHarness) -> None:
    question, _, ts = await bench.shown()
    await bench.slack.press(BEN, bench.general, ts, "blue")
    assert await bench.answer(question) == ("blue", ("ben",))
    (_, (answer,)) = await bench.rt.questions.of_job(question.job)
    assert answer.source == "slack"
    assert answer.source_event_id.startswith(f"slack:act:{bench.general}:{ts}:{BEN}:")
    assert await bench.ephemeral_texts(BEN) == []


async def test_choice_number_is_not_confused_with_a_value(bench: SlackBotHarness) -> None:
    crossed = QuestionSpec.model_validate({"key": "k", "text": "?", "choices": ["2", "1"]})
    question, _, ts = await bench.shown(crossed)
    await bench.slack.press(BEN, bench.general, ts, ids.answer_action(1))
    assert await bench.answer(question) == ("2", ("ben",))


async def test_approval_by_button_counts_votes(bench: SlackBotHarness) -> None:
    question, _, ts = await bench.shown(GATE.model_copy(update={"quorum": 2}))
    await bench.slack.press(CAROL, bench.general, ts, ids.APPROVE)
    assert await bench.ephemeral_texts(CAROL) == [f"{question.name} recorded: 1 of 2 approvals."]
    await bench.slack.press(CAROL, bench.general, ts, ids.APPROVE)
    already = f"{question.name}: your approval is already recorded, 1 of 2."
    assert (await bench.ephemeral_texts(CAROL))[1] == already
    assert await bench.is_open(question)
    await bench.slack.press(DAVE, bench.general, ts, ids.APPROVE)
    assert await bench.answer(question) == ("approved", ("carol", "dave"))


async def test_simultaneous_presses_accept_one_and_inform_the_other(bench: SlackBotHarness) -> None:
    question, _, ts = await bench.shown(GATE)
    await asyncio.gather(
        bench.slack.press(CAROL, bench.general, ts, ids.APPROVE),
        bench.slack.press(DAVE, bench.general, ts, ids.APPROVE),
    )
    _, (winner,) = await bench.answer(question)
    loser = {"carol": DAVE, "dave": CAROL}[winner]
    (text,) = await bench.ephemeral_texts(loser)
    refused = f"Your answer was not accepted: {question.name} was already approved by {winner}, "
    assert text.startswith(refused)


async def test_modal_opens_while_the_database_is_locked(bench: SlackBotHarness) -> None:
    _, _, ts = await bench.shown(QuestionSpec(key="w", text="Why?", freeform=True))
    _, _, gate_ts = await bench.shown(GATE)
    holder = await bench.rt.db.dedicated_connection()
    try:
        await holder.execute("BEGIN")
        tables = "draftsman.job_states, draftsman.job_questions"
        await holder.execute(f"LOCK TABLE {tables} IN ACCESS EXCLUSIVE MODE")
        for user, message_ts, action in ((BEN, ts, ids.FREE), (CAROL, gate_ts, ids.DENY)):
            assert (await bench.slack.press(user, bench.general, message_ts, action)).acked
            await bench.ctx.background.idle()
            assert len(bench.slack.views(user)) == 1
    finally:
        await holder.execute("ROLLBACK")
        await holder.close()


async def test_simultaneous_press_and_answer_from_another_channel_accept_one(
    bench: SlackBotHarness, make: Factory, people: People
) -> None:
    question, _, ts = await bench.shown()
    elsewhere = Response(source_event_id="1", text="red")
    pressed, verdict = await asyncio.gather(
        bench.slack.press(BEN, bench.general, ts, "blue"),
        bench.rt.questions.answer(question.job, 1, elsewhere, people.anna),
    )
    assert pressed.acked
    ended = await bench.answer(question)
    assert ended == (("red", ("anna",)) if verdict.accepted else ("blue", ("ben",)))
    assert len(await bench.ephemeral_texts(BEN)) == int(verdict.accepted)


async def test_double_click_is_one_answer(bench: SlackBotHarness) -> None:
    question, _, ts = await bench.shown()
    ack = await bench.slack.press(BEN, bench.general, ts, "blue", copies=3)
    assert [copy.acked for copy in ack.copies] == [True] * 3
    await bench.slack.press(BEN, bench.general, ts, "blue")
    _, values = await bench.rt.questions.of_job(question.job)
    assert [item.accepted for item in values] == [True, False]
    assert await bench.answer(question) == ("blue", ("ben",))
    already = f"{question.name}: your answer is already recorded: blue."
    assert await bench.ephemeral_texts(BEN) == [already]


async def test_second_click_after_a_decision_shows_the_recorded_answer(
    bench: SlackBotHarness,
) -> None:
    gate, _, ts = await bench.shown(GATE)
    again = await bench.slack.press(CAROL, bench.general, ts, ids.APPROVE)
    await bench.slack.press(CAROL, bench.general, ts, ids.APPROVE)
    await bench.slack.press(CAROL, bench.general, ts, ids.DENY)
    await bench.ctx.background.idle()
    (view,) = bench.slack.views(CAROL)
    await bench.slack.submit(CAROL, view["id"])
    already = f"{gate.name}: your approval is already recorded."
    assert await bench.ephemeral_texts(CAROL) == [already]
    assert list(bench.slack.views(CAROL)[0]["errors"].values()) == [already]
    await bench.slack.again(again)
    assert await bench.ephemeral_texts(CAROL) == [already], "the first click, delivered once more"
    await bench.slack.press(DAVE, bench.general, ts, ids.APPROVE)
    assert "was already approved by carol" in (await bench.ephemeral_texts(DAVE))[0]
    assert await bench.answer(gate) == ("approved", ("carol",))


async def test_changes_are_requested_in_a_modal(bench: SlackBotHarness) -> None:
    question, _, ts = await bench.shown(REVIEW)
    await bench.slack.press(CAROL, bench.general, ts, ids.REQUEST_CHANGES)
    await bench.ctx.background.idle()
    (view,) = bench.slack.views(CAROL)
    title = f"Request changes {question.name}"[:24]
    assert (view["title"]["text"], view["submit"]["text"]) == (title, "Request changes")
    await bench.slack.submit(CAROL, view["id"], {modal_views.TEXT: " "})
    assert list(bench.slack.views(CAROL)[0]["errors"].values()) == ["Say what to change."]
    await bench.slack.submit(CAROL, view["id"], {modal_views.TEXT: "use the v2 API"})
    assert await bench.answer(question) == ("changes_requested", ("carol",))
    [message] = await bench.rt.messages.of_job(question.job)
    assert (message.text, message.sender) == ("use the v2 API", "carol")


async def test_stale_or_forged_button_is_removed(bench: SlackBotHarness) -> None:
    question, _, _ = await bench.shown()
    old = ids.answer_value(999, 1, 1)
    for value in (old, "answer=blue", "q:1:1; drop table"):
        created = [actions([button("blue", ids.answer_action(1), value)])]
        message = await bench.post("an old message", blocks=created)
        assert (await bench.slack.press(BEN, bench.general, message["ts"], "blue")).acked
        await bench.ctx.background.idle()
        (shown,) = [m for m in bench.slack.messages(bench.general) if m["ts"] == message["ts"]]
        assert shown.get("blocks", []) == []
    assert await bench.ephemeral_texts(BEN) == ["This is no longer active."] * 3
    assert await bench.is_open(question)


async def test_an_unknown_choice_leaves_an_open_question_its_buttons(
    bench: SlackBotHarness,
) -> None:
    question, _, ts = await bench.shown()
    tampered = actions(
        [button("blue", ids.answer_action(1), ids.answer_value(question.job, 1, 99))]
    )
    message = await bench.post("an edited copy", blocks=[tampered])
    assert (await bench.slack.press(BEN, bench.general, message["ts"], "blue")).acked
    (text,) = await bench.ephemeral_texts(BEN)
    assert text == f"{question.name} has no such choice; use its buttons"
    (stored,) = [m for m in bench.slack.messages(bench.general) if m["ts"] == message["ts"]]
    assert stored["blocks"][0]["type"] == "actions"
    await bench.slack.press(BEN, bench.general, ts, "blue")
    assert await bench.answer(question) == ("blue", ("ben",))


async def test_press_without_permission_is_refused_and_recorded(bench: SlackBotHarness) -> None:
    question, _, ts = await bench.shown(GATE)
    eve = bench.stranger("UEVE")
    for user in (MALLORY, ANNA, eve):
        await bench.slack.press(user, bench.general, ts, ids.APPROVE, copies=2)
    assert (
        "needs the role approver); allowed: carol, dave"
        in (await bench.ephemeral_texts(MALLORY))[0]
    )
    assert (
        "needs the role approver); allowed: carol, dave" in (await bench.ephemeral_texts(ANNA))[0]
    )
    assert "another workspace" in (await bench.ephemeral_texts(eve))[0]
    assert await bench.is_open(question)
    _, stored = await bench.rt.questions.of_job(question.job)
    assert [(item.responder_id, item.accepted) for item in stored] == [
        (MALLORY, False), (ANNA, False), ("UEVE@T0ELSEWHERE", False),
    ]  # fmt: skip
    noted = await bench.job_events(question, "answer_refused")
    assert [item["voter"] for item in noted] == [
        f"slack:{MALLORY}", "anna", "slack:UEVE@T0ELSEWHERE",
    ]  # fmt: skip
    assert "another workspace" in noted[2]["reason"]
    await bench.slack.press(CAROL, bench.general, ts, ids.APPROVE)
    assert await bench.answer(question) == ("approved", ("carol",))


async def test_choice_and_modal_of_an_external_user_are_recorded(
    bench: SlackBotHarness,
) -> None:
    question, _, ts = await bench.shown()
    gate, _, gate_ts = await bench.shown(GATE)
    eve = bench.stranger("UEVE")
    await bench.slack.press(eve, bench.general, ts, "blue")
    await bench.slack.press(eve, bench.general, gate_ts, ids.DENY)
    await bench.ctx.background.idle()
    (view,) = bench.slack.views(eve)
    await bench.slack.submit(eve, view["id"], {modal_views.REASON: "mine"})
    for open_question, payload in (
        (question, {"value": "blue"}),
        (gate, {"decision": "deny", "reason": "mine"}),
    ):
        _, (stored,) = await bench.rt.questions.of_job(open_question.job)
        assert (stored.accepted, stored.payload) == (False, payload)
        assert await bench.is_open(open_question)


async def test_refused_cancel_and_retry_are_recorded(
    bench: SlackBotHarness,
) -> None:
    question, _, _ = await bench.shown()
    value = ids.job_value(question.job)
    created = [actions([button("Cancel", ids.CANCEL, value), button("Retry", ids.RETRY, value)])]
    ts = (await bench.post("a job", blocks=created))["ts"]
    eve = bench.stranger("UEVE")
    for user in (BEN, MALLORY, eve):
        await bench.slack.press(user, bench.general, ts, ids.CANCEL, copies=2)
    await bench.slack.press(BEN, bench.general, ts, ids.RETRY)
    noted = [
        e for e in await bench.rt.read_model.job_events(question.job) if e.kind == "action_refused"
    ]
    assert [(item.actor, item.payload["action"]) for item in noted] == [
        (f"slack:{BEN}", "cancel"),
        (f"slack:{MALLORY}", "cancel"),
        ("slack:UEVE@T0ELSEWHERE", "cancel"),
        (f"slack:{BEN}", "retry"),
    ]
    (shown,) = [m for m in bench.slack.messages(bench.general) if m["ts"] == ts]
    assert len(shown["blocks"]) == 1, "the buttons stay"
    assert await bench.is_open(question)


async def test_more_than_100_choices_are_searched(bench: SlackBotHarness) -> None:
    question, _, ts = await bench.shown(MANY)
    options = await bench.slack.suggest(BEN, bench.general, ts, ids.CHOOSE, "")
    assert len(options) == 100
    options = await bench.slack.suggest(BEN, bench.general, ts, ids.CHOOSE, "CHOICE 249")
    (option,) = options
    await bench.slack.choose(BEN, bench.general, ts, ids.CHOOSE, option["value"])
    assert await bench.answer(question) == ("choice 249", ("ben",))


async def test_long_choice_values_travel_as_numbers(bench: SlackBotHarness) -> None:
    question, _, ts = await bench.shown(LONG)
    await bench.slack.choose(BEN, bench.general, ts, ids.CHOOSE, ids.answer_value(1, 1, 7))
    assert await bench.answer(question) == ("7" * 150, ("ben",))


async def test_expired_trigger_asks_to_press_again(bench: SlackBotHarness) -> None:
    question, _, ts = await bench.shown(QuestionSpec(key="w", text="Why?", freeform=True))
    for code in ("expired_trigger_id", "exchanged_trigger_id", "invalid_trigger_id"):
        bench.slack.faults.next("views.open", error(code))
        await bench.slack.press(BEN, bench.general, ts, ids.FREE)
    bench.slack.faults.next("views.open", Fault.DROP_BEFORE)
    await bench.slack.press(BEN, bench.general, ts, ids.FREE)
    assert await bench.ephemeral_texts(BEN) == ["Slack timed out. Please try again."] * 3
    await bench.slack.press(BEN, bench.general, ts, ids.FREE)
    await bench.ctx.background.idle()
    assert len(bench.slack.views(BEN)) == 1
    assert await bench.is_open(question)


async def test_cancel_and_retry_buttons_require_permission(
    bench: SlackBotHarness,
) -> None:
    number = await bench.make.queued()
    value = ids.job_value(number)
    created = [actions([button("Cancel", ids.CANCEL, value), button("Retry", ids.RETRY, value)])]
    message = await bench.post("a job", blocks=created)
    await bench.slack.press(BEN, bench.general, message["ts"], ids.CANCEL)
    assert "ben may not cancel" in (await bench.ephemeral_texts(BEN))[0]
    own_job = await bench.make.queued(actor=Actor("slack", ANNA, "anna"))
    value = ids.job_value(own_job)
    created = [actions([button("Cancel", ids.CANCEL, value), button("Retry", ids.RETRY, value)])]
    message = await bench.post("mine", blocks=created)
    await bench.slack.press(ANNA, bench.general, message["ts"], ids.CANCEL)
    await bench.slack.press(ANNA, bench.general, message["ts"], ids.RETRY)
    messages = await bench.ephemeral_texts(ANNA)
    assert messages == [f"D-{own_job} canceled.", f"D-{own_job} retried as D-{own_job + 1}."]


async def test_the_failure_of_an_own_job_is_dismissed_by_its_button(
    bench: SlackBotHarness,
) -> None:
    number = await bench.make.dead(actor=Actor("slack", ANNA, "anna"))
    created = [actions([button("Dismiss", ids.DISMISS, ids.job_value(number))])]
    message = await bench.post("a job", blocks=created)
    await bench.slack.press(BEN, bench.general, message["ts"], ids.DISMISS)
    assert "ben may not dismiss" in (await bench.ephemeral_texts(BEN))[0]
    await bench.slack.press(ANNA, bench.general, message["ts"], ids.DISMISS, copies=2)
    said = await bench.ephemeral_texts(ANNA)
    assert all(text.startswith(f"D-{number} dismissed. To take it back: ") for text in said)
    assert await bench.rt.read_model.jobs(failures=True) == []


async def test_button_of_another_app_message_is_acknowledged(bench: SlackBotHarness) -> None:
    created = [actions([{**button("Docs", "docs", "x"), "url": "https://example.org"}])]
    message = await bench.post("docs", blocks=created)
    assert (await bench.slack.press(BEN, bench.general, message["ts"], "docs")).acked
    assert await bench.ephemeral_texts(BEN) == []
