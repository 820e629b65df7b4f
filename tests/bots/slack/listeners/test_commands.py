"""The slash command: a job, or an ephemeral reply."""

from __future__ import annotations

import pytest

from draftsman.errors import NotFound
from draftsman.jobs.job import Source
from draftsman.jobs.runs.outcome import Done
from draftsman.people.actor import Actor
from draftsman.repos.repo_catalog import Repo
from draftsman.repos.repo_profile import profile
from draftsman.repos.repo_url import parse
from draftsman_bots.conversation.requests import OPTIONS
from draftsman_testing.factories import GATE
from tests.bots.slack.listeners.conftest import ANNA, BEN, MALLORY, OLGA, SlackBotHarness


async def test_request_creates_a_job_with_updates_where_it_was_made(
    bench: SlackBotHarness,
) -> None:
    ack = await bench.slack.command(ANNA, bench.general, "fix --ref=main the *parser* &amp; co")
    (job,) = [
        await bench.rt.read_model.job(item.number) for item in await bench.rt.read_model.jobs()
    ]
    request = job.agent_request
    assert (request.text, request.mode, request.agent) == ("the *parser* & co", "fix", "tidy")
    assert (job.source, job.invoker_id) == ("slack", "anna")
    assert ack.body["response_type"] == "ephemeral"
    assert ack.body["text"].startswith(f"D-{job.number} is queued")
    (target,) = await bench.rt.outbox.targets(job.number)
    assert (target.channel, target.target, target.thread) == ("slack", bench.general, None)
    assert job.idempotency_key == f"slack:trg:{ack.sent['trigger_id']}"


async def test_repeated_delivery_of_a_command_creates_one_job(bench: SlackBotHarness) -> None:
    await bench.slack.command(ANNA, bench.general, "fix it", copies=5)
    assert await bench.jobs() == ["fix it".removeprefix("fix ")]
    await bench.slack.command(ANNA, bench.general, "fix it")
    assert await bench.jobs() == ["it", "it"]


@pytest.mark.parametrize("text", ["", "   ", "help", "HELP me"])
async def test_empty_command_shows_usage(bench: SlackBotHarness, text: str) -> None:
    ack = await bench.slack.command(ANNA, bench.general, text)
    assert "`/draftsman fix TEXT`" in ack.body["text"]
    assert [f"--{name}" for name in OPTIONS if f"`--{name}=" not in ack.body["text"]] == []
    assert 'Quoted text is never an option: `/draftsman fix "--repo' in ack.body["text"]
    assert ack.body["response_type"] == "ephemeral"
    assert await bench.jobs() == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x" * 10_000, "x" * 10_000),
        ("\u202eright to left \u05d0\u05d1", "\u202eright to left \u05d0\u05d1"),
        ("zero\u200bwidth \U0001f468\u200d\U0001f469\u200d\U0001f467", None),
        ("a NUL \x00 and a half \ud800 sign", "a NUL \ufffd and a half ? sign"),
    ],
)
async def test_unusual_characters_are_stored_unchanged(
    bench: SlackBotHarness, text: str, expected: str | None
) -> None:
    await bench.slack.command(ANNA, bench.general, f"fix {text}")
    assert await bench.jobs() == [expected or text]


async def test_title_is_truncated_between_graphemes(
    bench: SlackBotHarness,
) -> None:
    family = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
    await bench.slack.command(ANNA, bench.general, f"fix {family * 60}")
    (job,) = await bench.rt.read_model.jobs()
    assert job.title is not None
    assert job.title.endswith(f"{family}…")
    assert job.title.removesuffix("…").replace(family, "") == ""
    assert await bench.jobs() == [family * 60]


async def test_too_long_text_is_refused_with_the_limit(
    bench: SlackBotHarness,
) -> None:
    ack = await bench.slack.command(ANNA, bench.general, "fix " + "x" * 200_001)
    assert "200000" in ack.body["text"]
    assert await bench.jobs() == []


async def test_mentions_and_links_in_a_task_are_escaped(
    bench: SlackBotHarness,
) -> None:
    hostile = "&lt;!everyone&gt; <https://evil.example|click>"
    await bench.slack.command(ANNA, bench.general, f"fix {hostile}")
    assert await bench.jobs() == ["<!everyone> click (https://evil.example)"]
    ack = await bench.slack.command(ANNA, bench.general, "list")
    assert "&lt;!everyone&gt; click" in ack.body["text"]


async def test_unlinked_user_is_refused_without_the_names_of_people(bench: SlackBotHarness) -> None:
    ack = await bench.slack.command(MALLORY, bench.general, "fix it")
    assert "anna" not in ack.body["text"]
    assert "/draftsman link" in ack.body["text"]
    assert ack.body["response_type"] == "ephemeral"
    assert await bench.jobs() == []


async def test_person_without_the_role_is_refused_with_the_allowed_people(
    bench: SlackBotHarness,
) -> None:
    ack = await bench.slack.command(BEN, bench.general, "fix it")
    assert "ben may not submit (needs the role invoker); allowed: anna, erin" in ack.body["text"]


async def test_request_in_a_channel_that_is_not_allowed_names_the_allowed_channels(
    bench: SlackBotHarness,
) -> None:
    bench.limit(channels=("C0OTHER",))
    ack = await bench.slack.command(ANNA, bench.general, "fix it")
    assert "<#C0OTHER>" in ack.body["text"]
    await bench.slack.command(ANNA, bench.slack.direct(ANNA), "fix this one")
    assert await bench.jobs() == ["this one"]


async def test_a_job_is_shown_canceled_and_retried_by_command(bench: SlackBotHarness) -> None:
    replies = []
    await bench.slack.command(ANNA, bench.general, "investigate the heap")
    for text in ("status", "status D-1", "show 1", "cancel D-1 no time", "cancel 1", "retry D-1"):
        ack = await bench.slack.command(ANNA, bench.general, text)
        replies.append(ack.body["text"])
    assert "*D-1* queued: the heap" in replies[0]
    assert replies[1].startswith("*D-1* the heap\nqueued: ")
    assert "requested by" in replies[2]
    assert replies[3] == "D-1 canceled."
    assert "already canceled" in replies[4]
    assert replies[5] == "D-1 retried as D-2."
    assert (await bench.rt.read_model.job(1)).cancel_reason == "no time"


async def test_only_an_open_failure_has_the_button_that_dismisses_it(
    bench: SlackBotHarness,
) -> None:
    rt, make = bench.rt, bench.make
    failed, dismissed, retried = [await make.failed() for _ in range(3)]
    await rt.job_control.dismiss(dismissed, make.owner)
    await rt.job_control.retry(retried, make.owner)
    offered = []
    for number in (failed, dismissed, retried):
        ack = await bench.slack.command(ANNA, bench.general, f"show D-{number}")
        buttons = ack.body["blocks"][-1]["elements"]
        offered.append([button["text"]["text"] for button in buttons])
    assert offered == [["Retry", "Dismiss"], ["Retry"], ["Retry"]]


@pytest.mark.parametrize("option", ["--again", "\u2014again"])
async def test_completed_job_is_retried_with_the_suggested_option(
    bench: SlackBotHarness, option: str
) -> None:
    anna = Actor("slack", ANNA, "anna")
    work = await bench.make.running(await bench.make.queued(actor=anna))
    await bench.rt.settlement.outcome(work, Done({}))
    replies = []
    for text in ("retry D-1", f"retry D-1 {option}", "help"):
        ack = await bench.slack.command(ANNA, bench.general, text)
        replies.append(ack.body["text"])
    assert replies[0] == "D-1 completed; to run it again use --again"
    assert replies[1] == "D-1 retried as D-2."
    assert "retry D-142 [fresh] [again] [with-answer]" in replies[2]


async def test_answer_command_requires_the_name_of_the_question(
    bench: SlackBotHarness,
) -> None:
    question, _ = await bench.asked()
    ack = await bench.slack.command(BEN, bench.general, f"answer D-{question.job} blue")
    assert f"a question is required: answer {question.name}" in ack.body["text"]
    assert await bench.is_open(question)
    ack = await bench.slack.command(BEN, bench.general, f"answer {question.name} blue")
    assert ack.body["text"] == f"{question.name} answered: blue; job resumed."
    assert await bench.answer(question) == ("blue", ("ben",))


async def test_approval_by_command_requires_an_approver(bench: SlackBotHarness) -> None:
    question, _ = await bench.asked(GATE)
    ack = await bench.slack.command(ANNA, bench.general, f"approve {question.name}")
    assert "allowed: carol, dave" in ack.body["text"]
    ack = await bench.slack.command("UCAROL", bench.general, f"deny {question.name} too risky")
    assert ack.body["text"] == f"{question.name} denied; job failed."
    assert ((await bench.question(question)).resolution or {})["reason"] == "too risky"


async def test_link_code_maps_an_account_once(bench: SlackBotHarness) -> None:
    ack = await bench.slack.command(OLGA, bench.general, "link")
    code = ack.body["text"].split("people link ")[1].split("`")[0]
    olga = Actor(Source.CLI, "olga", "Olga")
    linked = await bench.rt.people.link(code.lower(), olga)
    assert (linked.external_id, linked.person, linked.linked_by) == (OLGA, "olga", "cli:olga")
    question, _ = await bench.asked()
    ack = await bench.slack.command(OLGA, bench.general, f"cancel D-{question.job}")
    assert ack.body["text"] == f"D-{question.job} canceled."
    with pytest.raises(NotFound, match="the code is invalid, used or expired"):
        await bench.rt.people.link(code, olga)


async def test_errors_have_hints_in_chat_syntax(bench: SlackBotHarness) -> None:
    for text in ("show D-99", "answer D-99/1 red", "status D-99"):
        ack = await bench.slack.command(ANNA, bench.general, text)
        assert "see: list" in ack.body["text"]
        assert "see: draftsman" not in ack.body["text"]
    question, _ = await bench.asked()
    ack = await bench.slack.command(ANNA, bench.general, f"approve {question.name}")
    assert "reply with an answer" in ack.body["text"]
    ack = await bench.slack.command(ANNA, bench.general, f"status D-{question.job}")
    assert f"answer {question.name}" in ack.body["text"]
    assert "draftsman answer" not in ack.body["text"]


@pytest.mark.parametrize("private", [False, True])
async def test_request_in_a_channel_without_the_bot_explains_how_to_invite_it(
    bench: SlackBotHarness, private: bool
) -> None:
    room = bench.slack.channel("quiet", [ANNA], private=private, bot=False)
    await bench.slack.command(ANNA, room, "fix it")
    assert "type `/invite @draftsman`" in (await bench.ephemeral_texts(ANNA, room))[-1]
    await bench.slack.command(ANNA, bench.general, "fix that")
    assert "/invite" not in "".join(await bench.ephemeral_texts(ANNA))


async def test_configured_user_gets_no_link_code(bench: SlackBotHarness) -> None:
    ack = await bench.slack.command(ANNA, bench.general, "link")
    assert ack.body["text"] == "this account is already linked to anna in the configuration"


async def test_known_repository_is_found_by_its_name(
    bench: SlackBotHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By name or URL, with its own agent; local folders and other names are rejected."""
    agents = bench.rt.settings.agents
    monkeypatch.setitem(agents, "careful", agents["tidy"])
    owner = bench.make.owner
    pay = Repo.at(parse("https://git.example.org/acme/pay"))
    pay = await bench.rt.repos.add(pay, profile({"agent": "careful"}), owner)
    await bench.rt.repos.save_profile(pay, profile({"path": "api", "agent": "tidy"}), owner)
    for repo in ("pay", "acme/pay", pay.remote_url, "acme/pay//api"):
        ack = await bench.slack.command(ANNA, bench.general, f"fix --repo={repo} it with {repo}")
        assert "is queued" in ack.body["text"], ack.body
    jobs = [await bench.rt.read_model.job(number) for number in range(1, 5)]
    asked = [job.payload["repo"] for job in jobs]
    assert [item["source"] for item in asked] == [pay.remote_url] * 4
    assert [item.get("path", "") for item in asked] == ["", "", "", "api"]
    assert [job.agent_request.agent for job in jobs] == ["careful", "careful", "careful", "tidy"]
    for repo, why in (
        ("sale", "known: acme/pay"),
        ("/tmp", "a name or a URL"),
        ("https://x.org/other", "--agent is required"),
    ):
        ack = await bench.slack.command(ANNA, bench.general, f"fix --repo={repo} it")
        assert why in ack.body["text"]
    assert len(await bench.jobs()) == 4
    object.__setattr__(bench.rt.settings, "default_agent", "careful")
    await bench.slack.command(ANNA, bench.general, "fix --repo=https://x.org/other it")
    assert (await bench.rt.read_model.job(5)).agent_request.agent == "careful"


async def test_a_command_about_a_job_does_not_take_its_question(bench: SlackBotHarness) -> None:
    work = await bench.make.asked(GATE)
    ack = await bench.slack.command(OLGA, bench.general, f"cancel {work.name}/1")
    assert "is a question, and this is about a job" in ack.body["text"]
    assert (await bench.rt.read_model.job(work.number)).finished_at is None
