"""Text after a mention in a question's thread: an answer or a command, never both."""

from __future__ import annotations

import pytest

from draftsman.deliveries.delivery import DeliveryKind
from draftsman.questions.question_spec import QuestionSpec
from draftsman_bots.slack.deliveries.channel import SlackChannel
from draftsman_bots.slack.scopes import FULL, MINIMAL
from draftsman_testing.factories import GATE
from tests.bots.slack.channel_fixtures import message, shown
from tests.bots.slack.listeners.conftest import ANNA, BEN, CAROL, DAVE, MENTIONS, SlackBotHarness

WORDS = QuestionSpec(key="how", text="How?", freeform=True)
VERBS = QuestionSpec(key="verb", text="Which verb?", choices=("list", "retry", "approve"))


@pytest.fixture(params=["minimal", "full"])
def manifest(request: pytest.FixtureRequest, bench: SlackBotHarness) -> str:
    """Deliver the events of this manifest: mentions only, or messages as well."""
    if request.param == "minimal":
        bench.slack.subscribed = MENTIONS
    return str(request.param)


async def test_answer_may_begin_with_the_name_of_a_command(
    bench: SlackBotHarness, manifest: str
) -> None:
    question, root = await bench.asked(WORDS)
    await bench.slack.mention(BEN, bench.general, "list the files first", root, copies=2)
    assert await bench.answer(question) == ("list the files first", ("ben",))
    (text,) = await bench.ephemeral_texts(BEN)
    assert text == (
        f"In this thread, a message to me answers {question.name}. To run the command, type"
        " `/draftsman list` outside of threads."
    )
    await bench.slack.mention(BEN, bench.general, "list", root)
    assert f"*D-{question.job}*" in (await bench.ephemeral_texts(BEN))[1], (
        "no question is open any more"
    )


@pytest.mark.parametrize(
    "text", ["fix it at once", "cancel the rest", "help", "answer the mail first"]
)
async def test_answer_is_not_executed_as_a_command(bench: SlackBotHarness, text: str) -> None:
    bench.slack.subscribed = MENTIONS
    question, root = await bench.asked(WORDS)
    await bench.slack.mention(BEN, bench.general, text, root)
    assert await bench.answer(question) == (text, ("ben",))
    assert len(await bench.jobs()) == 1


async def test_answer_command_that_names_its_question_submits_only_its_text(
    bench: SlackBotHarness,
) -> None:
    question, root = await bench.asked(WORDS)
    await bench.slack.mention(BEN, bench.general, f"answer {question.name} slowly", root)
    assert await bench.answer(question) == ("slowly", ("ben",))


async def test_text_of_a_choice_is_an_answer_and_other_text_is_a_command(
    bench: SlackBotHarness, manifest: str
) -> None:
    question, root = await bench.asked(VERBS)
    await bench.slack.mention(BEN, bench.general, "status", root)
    assert await bench.is_open(question)
    assert f"*D-{question.job}*" in (await bench.ephemeral_texts(BEN))[0]
    await bench.slack.mention(BEN, bench.general, "List", root)
    assert await bench.answer(question) == ("list", ("ben",))


async def test_decision_word_is_text_without_an_approval(bench: SlackBotHarness) -> None:
    question, root = await bench.asked(VERBS)
    await bench.slack.mention(BEN, bench.general, "approve", root)
    assert await bench.answer(question) == ("approve", ("ben",))
    other, other_root = await bench.asked(WORDS)
    await bench.slack.say(BEN, bench.general, "deny it with 403", other_root)
    assert await bench.answer(other) == ("deny it with 403", ("ben",))


async def test_text_that_fits_several_questions_is_not_submitted(
    bench: SlackBotHarness, manifest: str
) -> None:
    first, root = await bench.asked(WORDS)
    second, _ = await bench.asked(WORDS, root=root)
    await bench.slack.mention(BEN, bench.general, "list the files", root)
    assert await bench.is_open(first)
    assert await bench.is_open(second)
    (text,) = await bench.ephemeral_texts(BEN)
    assert text.startswith("Which question does this answer?\n")
    assert "To run the command, type `/draftsman list`" in text
    (prompt,) = bench.slack.ephemerals(bench.general, BEN)
    await bench.slack.press(BEN, bench.general, prompt["ts"], second.name)
    await bench.ctx.background.idle()
    (view,) = bench.slack.views(BEN)
    await bench.slack.submit(BEN, view["id"])
    assert await bench.answer(second) == ("list the files", ("ben",))


async def test_text_answers_the_only_question_that_accepts_it(bench: SlackBotHarness) -> None:
    choice, root = await bench.asked(VERBS)
    gate, _ = await bench.asked(GATE, root=root)
    free_text, _ = await bench.asked(WORDS, root=root)
    await bench.slack.mention(BEN, bench.general, "show me first", root)
    assert await bench.answer(free_text) == ("show me first", ("ben",))
    assert await bench.is_open(choice)
    assert await bench.is_open(gate)


async def test_text_never_decides_an_approval(bench: SlackBotHarness, manifest: str) -> None:
    gate, root = await bench.asked(GATE)
    for text in ("list", "fix it", "approve it all"):
        await bench.slack.mention(CAROL, bench.general, text, root)
        assert await bench.is_open(gate)
    listed, refused, hint = await bench.ephemeral_texts(CAROL)
    assert f"*D-{gate.job}*" in listed
    assert refused.startswith(f"A job in this thread is waiting for an answer to {gate.name}")
    assert hint.startswith(f"{gate.name} needs a decision: reply `@draftsman approve`")
    assert len(await bench.jobs()) == 1
    await bench.slack.mention(CAROL, bench.general, "approve", root)
    assert await bench.answer(gate) == ("approved", ("carol",))


async def test_edited_request_is_not_an_answer_to_its_job(bench: SlackBotHarness) -> None:
    root = await bench.slack.say(BEN, bench.general, "it fails")
    request = await bench.slack.mention(ANNA, bench.general, "fix it", root.ts)
    question, _ = await bench.asked(WORDS, root=root.ts)
    edited = f"<@{bench.slack.bot_user}> fix it and more"
    await bench.slack.edit(bench.general, request.ts, edited)
    assert await bench.is_open(question)
    assert "the edit has no effect" in (await bench.ephemeral_texts(ANNA))[0]


@pytest.mark.parametrize(
    ("scopes", "call", "advice"),
    [
        (MINIMAL, "@draftsman ", "with `@draftsman ANSWER` in this thread"),
        (FULL, "", "by replying in this thread"),
    ],
)
async def test_instructions_match_the_granted_scopes(
    bench: SlackBotHarness, scopes: tuple[str, ...], call: str, advice: str
) -> None:
    bench.slack.world.scopes = set(scopes)
    answer = await bench.ctx.client.auth_test()
    bench.ctx.identity.read_scopes(answer.headers)
    channel = SlackChannel(bench.ctx.client, timeout=5, identity=bench.ctx.identity)
    question, _ = await bench.asked(WORDS)
    await channel.send(message(DeliveryKind.QUESTION, bench.general, question=question))
    asked = bench.slack.messages(bench.general)[-1]
    assert advice in shown(asked)
    notified = "mention @draftsman in this thread" if call else "reply in this thread"
    assert f"{notified}: your answer" in asked["text"]
    usage = (await bench.slack.command(ANNA, bench.general, "help")).body["text"]
    assert f"`{call}ANSWER`" in usage
    direct = bench.slack.direct(BEN)
    await channel.send(message(DeliveryKind.QUESTION, direct, question=question))
    (copy,) = bench.slack.messages(direct)
    assert "by replying in this thread" in shown(copy), "both manifests read direct messages"


@pytest.mark.parametrize(
    ("spec", "user", "text"),
    [(GATE, CAROL, "approve"), (WORDS, BEN, "list the files first")],
    ids=["gate", "words"],
)
async def test_redelivered_message_answers_no_later_question(
    bench: SlackBotHarness, spec: QuestionSpec, user: str, text: str
) -> None:
    first, root = await bench.asked(spec)
    written = await bench.slack.mention(user, bench.general, text, root)
    assert not await bench.is_open(first)
    work = await bench.make.running(first.job)
    await bench.rt.asking.ask(work.lease, spec.model_copy(update={"key": "second"}))
    second = await bench.rt.questions.get(first.job, 2)
    await bench.slack.event({**written.sent, "event_id": "Ev0OTHER"})
    assert await bench.is_open(second)
    await bench.slack.mention(user, bench.general, text, root)
    assert not await bench.is_open(second)


async def test_late_message_decides_no_approval_that_was_requested_after_it(
    bench: SlackBotHarness,
) -> None:
    first, root = await bench.asked(GATE)
    written = (await bench.post("a message, for its ts"))["ts"]
    other = await bench.slack.mention(DAVE, bench.general, "approve", root)
    work = await bench.make.running(first.job)
    await bench.rt.asking.ask(work.lease, GATE.model_copy(update={"key": "second"}))
    second = await bench.rt.questions.get(first.job, 2)
    event = {**other.sent["event"], "user": CAROL, "ts": written, "client_msg_id": "x"}
    await bench.slack.event({**other.sent, "event_id": "Ev0LATE", "event": event})
    assert await bench.is_open(second)
    (text,) = await bench.ephemeral_texts(CAROL)
    assert first.name in text


@pytest.mark.parametrize("mention", [True, False])
async def test_command_with_a_slash_or_a_name_is_no_answer(
    bench: SlackBotHarness, mention: bool
) -> None:
    question, root = await bench.asked(WORDS)
    say = bench.slack.mention if mention else bench.slack.say
    await say(BEN, bench.general, " /status", root)
    await say(BEN, bench.general, f"/show D-{question.job}", root)
    assert await bench.is_open(question)
    texts = await bench.ephemeral_texts(BEN)
    assert [f"*D-{question.job}*" in text for text in texts] == [True, True]
    await bench.slack.mention(BEN, bench.general, f"show D-{question.job}", root)
    assert await bench.is_open(question), "the name says that it is a command"
    await say(BEN, bench.general, f"/answer {question.name} slowly", root)
    assert await bench.answer(question) == ("slowly", ("ben",))
    other, root = await bench.asked(WORDS)
    await say(BEN, bench.general, "> How?\n\n/answer slowly", root)
    assert await bench.answer(other) == ("slowly", ("ben",))


async def test_mention_names_its_question_without_a_command(bench: SlackBotHarness) -> None:
    question, _ = await bench.asked(WORDS)
    await bench.slack.mention(BEN, bench.general, f", {question.name} slowly")
    assert await bench.answer(question) == ("slowly", ("ben",))


async def test_a_decision_that_names_another_question_decides_none(
    bench: SlackBotHarness,
) -> None:
    gate, root = await bench.asked(GATE)
    other, _ = await bench.asked(GATE)
    await bench.slack.say(CAROL, bench.general, f"deny {other.name} not now", root)
    assert await bench.is_open(gate)
    assert not await bench.is_open(other)
    assert await bench.answer(other) == ("denied", ("carol",))


async def test_command_of_a_thread_is_for_its_job(bench: SlackBotHarness) -> None:
    olga = await bench.linked("olga")
    question, root = await bench.asked(VERBS)
    await bench.slack.mention(olga, bench.general, "pause the API is down", root)
    assert (await bench.rt.read_model.why(question.job)).paused
    other, _ = await bench.asked(VERBS, root=root)
    await bench.slack.mention(olga, bench.general, "cancel", root)
    assert await bench.is_open(question)
    assert await bench.is_open(other)
    _, *texts = await bench.ephemeral_texts(olga)
    assert texts[0].startswith(f"D-{question.job} paused.")
    assert texts[1].startswith(f"Which job is meant: D-{other.job} or D-{question.job}?")
