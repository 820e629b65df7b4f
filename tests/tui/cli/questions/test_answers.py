"""The `answer`, `approve` and `deny` commands with every outcome."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from draftsman.deliveries.question_text import resolution_text
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.questions.question_spec import Choice, QuestionSpec
from draftsman.runtime import Runtime
from draftsman_testing.factories import GATE, QUESTION, Factory
from draftsman_testing.people import People
from tests.support.clock import Clock
from tests.tui.cli.cli_runner import Cli, Terminal, process
from tests.tui.cli.conftest import As

FREE = QuestionSpec(key="free", text="What then?", freeform=True)


@pytest.mark.parametrize("arguments", [["2"], ["blue"], ["BLUE"], ["-"]])
async def test_a_choice_is_named_by_number_or_name(
    cli: Cli, make: Factory, rt: Runtime, arguments: list[str]
) -> None:
    work = await make.asked()
    done = await cli("answer", f"{work.name}/1", *arguments, stdin=" blue\n")
    assert (done.code, done.err) == (0, "")
    assert done.out == f"{work.name}/1 answered: blue; job resumed\n"
    _, answers = await rt.questions.of_job(work.number)
    assert [(a.source, a.payload, a.accepted) for a in answers] == [
        ("cli", {"value": "blue"}, True)
    ]
    assert answers[0].source_event_id.startswith("cli:")


OPEN_CHOICE = QUESTION.model_copy(update={"freeform": True})


async def test_a_number_that_no_choice_has_needs_text(cli: Cli, make: Factory, rt: Runtime) -> None:
    work = await make.asked(OPEN_CHOICE)
    name = f"{work.name}/1"
    (await cli("answer", name, "7")).refused(
        2, f"{name}: there is no choice 7; choose: 1 red, 2 blue; to answer with 7, use --text"
    )
    (await cli("answer", name, "rde")).refused(
        2, f"{name}: 'rde' is not a choice; did you mean red? to answer with rde, use --text"
    )
    (await cli("answer", name, "7", "--text", "7")).refused(2, "VALUE cannot be combined")
    assert (await rt.questions.get(work.number, 1)).status == "open"
    done = await cli("answer", name, "--text", "re")
    assert done.out == f"{name} answered: re; job resumed\n"


async def test_a_number_that_no_choice_has_is_confirmed_on_a_terminal(
    make: Factory, terminal: Callable[..., Terminal], rt: Runtime
) -> None:
    work = await make.asked(OPEN_CHOICE)
    screen = terminal("answer", f"{work.name}/1", "7")
    screen.expect("choose: 1 red, 2 blue. Answer with the text 7? [y/N]")
    screen.type("y\n")
    assert screen.end() == 0
    assert (await rt.questions.get(work.number, 1)).answer_text() == "7"


async def test_free_text_is_the_whole_input(cli: Cli, make: Factory) -> None:
    work = await make.asked(FREE)
    done = await cli("answer", f"{work.name}/1", "use", "the", "staging server", "--json")
    assert done.json | {"accepted": True, "job_status": "resumed"} == done.json
    assert done.json["resolution"]["text"] == "use the staging server"


async def test_an_invalid_choice_is_refused_and_the_question_stays_open(
    cli: Cli, make: Factory, rt: Runtime
) -> None:
    work = await make.asked()
    name = f"{work.name}/1"
    (await cli("answer", name, "green")).refused(2, "'green' is not a choice", "1 red, 2 blue")
    (await cli("answer", name, "")).refused(2, "VALUE is required")
    (await cli("answer", name)).refused(2, f"draftsman answer {name} VALUE")
    (await cli("approve", name)).refused(2, "is a question, not an approval")
    assert (await rt.questions.get(work.number, 1)).status == "open"
    assert await rt.questions.of_job(work.number) == ([await rt.questions.get(work.number, 1)], [])


async def test_a_job_without_a_question_number_is_refused_without_a_terminal(
    cli: Cli, make: Factory, rt: Runtime
) -> None:
    work = await make.asked()
    done = await cli("answer", work.name, "red")
    done.refused(2, "to answer its open question", f"draftsman answer {work.name}/1")
    assert (await rt.questions.get(work.number, 1)).status == "open"
    await make.answer(work.number, "red")
    (await cli("answer", work.name, "red")).refused(1, "has no open question")


async def test_a_second_answer_names_the_first_responder(
    cli: Cli, make: Factory, rt: Runtime, people: People
) -> None:
    work = await make.asked()
    await make.answer(work.number, "red", people.ben)
    done = await cli("answer", f"{work.name}/1", "blue")
    done.refused(4, f"{work.name}/1 was already answered by ben", "your answer was recorded")
    _, answers = await rt.questions.of_job(work.number)
    assert [given_answer.payload["value"] for given_answer in answers] == ["red", "blue"]


async def test_one_of_many_concurrent_answers_is_accepted(cli: Cli, make: Factory) -> None:
    work = await make.asked()
    command = [cli.config, "answer", f"{work.name}/1"]
    calls = [
        asyncio.to_thread(process, "--config", *command, choice) for choice in ("red", "blue") * 2
    ]
    codes = sorted(done.returncode for done in await asyncio.gather(*calls))
    assert codes == [0, 4, 4, 4]


async def test_a_late_answer_is_stored_with_a_hint_to_retry(
    cli: Cli, make: Factory, rt: Runtime
) -> None:
    number = await make.expired()
    retry = f"draftsman retry D-{number} --with-answer"
    (await cli("answer", f"D-{number}/1", "red")).refused(
        1, "expired", f"your answer was recorded; to run the job with it: {retry}\n"
    )
    shown = await cli("show", f"D-{number}")
    assert f"to run it with the late answer: {retry}" in " ".join(
        f"{shown.out} {shown.err}".split()
    )
    assert retry in (await cli("why", f"D-{number}")).out
    retry_document = (await cli(*retry.split()[1:], "--json")).json
    assert (await rt.read_model.job(retry_document[0]["number"])).overrides == {
        "answers": {"pick": "red"}
    }


async def test_an_answer_between_the_expiry_and_the_sweep_is_late(
    cli: Cli, make: Factory, clock: Clock, rt: Runtime
) -> None:
    work = await make.asked(QUESTION.model_copy(update={"expires_in": 5}))
    await clock.forward(10)
    done = await cli("answer", f"{work.name}/1", "red")
    done.refused(1, "expired before this answer arrived", "once it has expired", "--with-answer")
    _, answers = await rt.questions.of_job(work.number)
    assert [(given_answer.accepted, given_answer.payload["value"]) for given_answer in answers] == [
        (False, "red")
    ]


async def test_an_answer_after_the_default_is_refused_with_the_status_of_the_job(
    cli: Cli, make: Factory, rt: Runtime
) -> None:
    item = QUESTION.model_copy(update={"default": "red", "on_expire": "default"})
    work = await make.asked(item.model_copy(update={"expires_in": 0.000001}))
    assert (await cli("sweep", "expire")).out == "expire: changed 1 row\n"
    (await cli("answer", f"{work.name}/1", "blue")).refused(1, "continued without it")


async def test_an_unauthorized_answer_names_the_permitted_people(
    as_: As, make: Factory, rt: Runtime
) -> None:
    work = await make.asked()
    (await as_("carol")("answer", f"{work.name}/1", "red")).refused(1, "may not answer", "ben")
    done = await as_(None)("answer", f"{work.name}/1", "red", "--json")
    assert done.code == 1
    assert '"accepted": false' in done.out
    assert (await rt.questions.get(work.number, 1)).status == "open"


async def test_an_approval_needs_its_quorum_of_people(as_: As, make: Factory) -> None:
    work = await make.asked(GATE.model_copy(update={"quorum": 2}))
    name = f"{work.name}/1"
    (await as_("erin")("approve", name)).refused(
        1, "erin may not decide this approval; allowed: carol, dave"
    )
    done = await as_("carol")("approve", name, "--reason", "looked at it")
    assert done.out == f"{name} recorded: 1 of 2 approvals\n"
    (await as_("carol")("approve", name)).refused(1, "your approval is already recorded")
    done = await as_("dave")("approve", name, "--json")
    assert done.json["resolution"]["by"] == ["carol", "dave"]
    (await as_("carol")("deny", name)).refused(4, "your approval is already recorded")


async def test_changes_are_requested_with_comments(as_: As, make: Factory, rt: Runtime) -> None:
    work = await make.reviewed()
    name = f"{work.name}/1"
    carol = as_("carol")
    shown = (await carol("questions", name)).out
    assert f"draftsman request-changes {name} TEXT" in shown
    why = (await carol("why", work.name)).out
    assert f"to approve, request changes or deny: draftsman approve {name}" in why
    (await as_("ben")("request-changes", name, "no")).refused(1, "may not approve")
    (await carol("request-changes", name)).refused(2, "needs a text or a comment: what to change")
    comment = ("--comment", "a.py:9=x")
    (await carol("request-changes", name, *comment)).refused(2, "the diff has no line 9 of a.py")
    comments = ("--comment", "a.py:2=why=2?", "--comment", "b.txt=name it")
    done = await carol("request-changes", name, "add a test", *comments, "--json")
    by_line = {"path": "a.py", "line": 2, "text": "why=2?"}
    assert done.json["resolution"] == {
        "outcome": "changes_requested",
        "via": "person",
        "by": ["carol"],
        "reason": "add a test",
        "comments": [by_line, {"path": "b.txt", "text": "name it"}],
    }
    (await as_("dave")("request-changes", name, "more")).refused(
        4, f"{name}: changes were already requested by carol"
    )
    (await as_("dave")("approve", name)).refused(4, "changes were already requested by carol")
    shown = (await carol("show", work.name)).out
    assert "requests changes: add a test" in shown
    [message] = await rt.messages.of_job(work.number)
    assert message.text == "add a test\n\na.py:2: why=2?\nb.txt: name it"


async def test_an_approval_that_is_asked_again_repeats_the_requested_changes(
    as_: As, make: Factory, people: People
) -> None:
    work = await make.overtaken(people.carol)
    first, second = f"{work.name}/1", f"{work.name}/2"
    asked = (await as_("dave")("questions", second)).out
    heading, reason, comment = asked.partition("changes requested by ")[2].splitlines()[:3]
    assert heading == f"carol in {first}:"
    assert (reason.strip(), comment.strip()) == ("use the v2 API", "a.py:3: handle None")
    late = await as_("dave")("approve", first)
    late.refused(1, f"{first} was replaced: it is asked again as {second}")
    late.refused(1, f"to see it: draftsman show {second}")
    assert (await as_("dave")("show", second)).code == 0
    shown = (await as_("dave")("show", work.name)).out
    assert f"asked again as {second}" in shown


async def test_changes_are_requested_by_the_lines_of_a_file(
    as_: As, make: Factory, rt: Runtime
) -> None:
    """Each line that begins with a changed file is a comment; the others are the text."""
    work = await make.reviewed()
    text = "Two things\na.py:3: return it\nb.txt=why?\nc.py: is not there\na.py is fine"
    done = await as_("carol")("request-changes", f"{work.name}/1", "-", stdin=text)
    assert done.out == f"{work.name}/1 changes requested; job resumed\n"
    question = await rt.questions.get(work.number, 1)
    assert list(map(str, question.comments)) == ["a.py:3: return it", "b.txt: why?"]
    reason = (question.resolution or {})["reason"]
    assert reason == "Two things\nc.py: is not there\na.py is fine"


async def test_a_token_requests_changes_in_the_name_of_its_approver(as_: As, make: Factory) -> None:
    work = await make.reviewed()
    name = f"{work.name}/1"
    token = (await as_("carol")("approve", name, "--mint-token", "carol")).out.strip()
    (await as_("dave")("request-changes", name, "x", "--token", token)).refused(1, "only the")
    done = await as_("carol")("request-changes", name, "x", "--token", token)
    assert done.out == f"{name} changes requested; job resumed\n"


async def test_a_denial_ends_the_job_with_its_reason(as_: As, make: Factory) -> None:
    work = await make.asked(GATE)
    (await as_("carol")("answer", f"{work.name}/1", "approve")).refused(2, "approve|deny")
    reason = "a.py:5: too risky\naccepted: b.py"
    done = await as_("carol")("deny", f"{work.name}/1", "--reason", reason)
    assert done.out == f"{work.name}/1 denied; job failed\n"
    cli = as_("carol")
    shown = (await cli("show", work.name)).out
    assert "  decision  denied by carol: a.py:5: too risky accepted: b.py\n" in shown
    assert (
        f"  {work.name}/1  approval was denied by carol: a.py:5: too risky accepted: b.py" in shown
    )
    assert "     ✗" not in shown
    assert "failed: denied by carol: a.py:5: too risky" in (await cli("why", work.name)).out
    assert "denied by carol: a.py:5: too risky" in (await cli("jobs", "--status", "failed")).out
    listed = (await cli("jobs", "--json")).json[0]
    assert (listed["status"], listed["error_class"]) == ("failed", "DENIED")
    assert listed["last_error"] == f"denied by carol: {reason}"


async def test_a_self_approval_is_refused(as_: As, make: Factory, people: People) -> None:
    item = GATE.model_copy(update={"approvers": ("erin", "carol")})
    work = await make.asked(item, actor=people.erin)
    (await as_("erin")("approve", f"{work.name}/1")).refused(1, "erin requested this job")


async def test_a_token_decides_once_in_the_name_of_its_approver(
    as_: As, make: Factory, rt: Runtime
) -> None:
    work = await make.asked(GATE.model_copy(update={"quorum": 2}))
    other = await make.asked(GATE)
    name = f"{work.name}/1"
    (await as_("olga")("approve", name, "--mint-token", "carol")).refused(1, "only carol can")
    minted = await as_("carol")("approve", name, "--mint-token", "carol")
    token = minted.out.strip()
    assert minted.code == 0
    assert "only once" in minted.err
    refusal = await as_("carol")("approve", f"{other.name}/1", "--token", token)
    refusal.refused(1, "this token is not valid for")
    (await as_(None)("approve", name, "--token", token)).refused(1, "only the approver can redeem")
    assert (await as_("carol")("approve", name, "--token", "-", stdin=f"{token}\n")).code == 0
    (await as_("carol")("deny", name, "--token", token)).refused(1, "already used")
    (await as_("carol")("deny", work.name, "--token", token)).refused(
        2, "requires a full question name"
    )
    (await as_("erin")("approve", name, "--mint-token", "erin")).refused(1, "erin")
    _, answers = await rt.questions.of_job(work.number)
    assert [given_answer.voter for given_answer in answers if given_answer.accepted] == ["carol"]
    assert all(token not in str(given_answer) for given_answer in answers)


async def test_a_job_without_a_question_number_is_shown_for_an_answer_on_a_terminal(
    make: Factory, terminal: Callable[..., Terminal], rt: Runtime
) -> None:
    work = await make.asked()
    screen = terminal("answer", work.name)
    screen.expect(f"Answer to {work.name}/1 (enter: not now): ")
    assert "Which one?" in screen.plain
    screen.type("green\n")
    screen.expect("'green' is not a choice")
    screen.type("2\n")
    screen.expect("answered: blue")
    assert screen.end() == 0


async def test_an_answer_without_a_question_number_is_confirmed_on_a_terminal(
    make: Factory, terminal: Callable[..., Terminal], rt: Runtime
) -> None:
    work = await make.asked(GATE)
    screen = terminal("approve", work.name)
    screen.expect(f"Approve {work.name}/1? [y/N]")
    screen.type("n\n")
    assert screen.end() == 1
    assert "nothing was changed" in screen.plain
    assert (await rt.questions.get(work.number, 1)).status == "open"


@pytest.mark.parametrize(
    ("asks", "words", "problem"),
    [
        (QUESTION, ("answer", "maybe"), "'maybe' is not a choice; choose: 1 red, 2 blue"),
        (GATE, ("answer", "maybe"), "is an approval; use: draftsman approve|deny"),
        (GATE, ("request-changes", "maybe"), "takes no requests for changes"),
    ],
)
async def test_an_answer_that_the_question_does_not_take_is_refused_before_the_confirmation(
    make: Factory,
    terminal: Callable[..., Terminal],
    asks: QuestionSpec,
    words: tuple[str, str],
    problem: str,
) -> None:
    work = await make.asked(asks)
    screen = terminal(words[0], work.name, words[1])
    screen.expect(problem)
    assert screen.end() == 2
    assert "[y/N]" not in screen.plain


async def test_an_empty_line_at_the_prompt_leaves_the_question_open(
    make: Factory, terminal: Callable[..., Terminal], rt: Runtime
) -> None:
    work = await make.asked()
    screen = terminal("answer", f"{work.name}/1")
    screen.expect(f"Answer to {work.name}/1 (enter: not now): ")
    screen.type("\n")
    screen.expect(f"{work.name}/1 stays open; to answer it: draftsman answer {work.name}/1")
    assert screen.end() == 1
    assert (await rt.questions.get(work.number, 1)).status == "open"


async def test_ctrl_c_at_the_prompt_answers_nothing(
    make: Factory, terminal: Callable[..., Terminal], rt: Runtime
) -> None:
    work = await make.asked()
    screen = terminal("answer", f"{work.name}/1")
    screen.expect("Answer to")
    screen.type("\x03")
    assert screen.end() == 130
    assert (await rt.questions.get(work.number, 1)).status == "open"


async def test_an_answer_typed_for_a_question_never_answers_the_next(
    make: Factory, terminal: Callable[..., Terminal], rt: Runtime, people: People
) -> None:
    work = await make.asked()
    screen = terminal("answer", work.name)
    screen.expect(f"Answer to {work.name}/1 (enter: not now): ")
    await make.answer(work.number, "red", people.ben)
    next_run = await make.running(work.number)
    await rt.asking.ask(next_run.lease, QUESTION.model_copy(update={"key": "next"}))
    screen.type("blue\n")
    assert screen.end() == 4
    assert "was already answered by ben" in screen.plain
    assert (await rt.questions.get(work.number, 2)).status == "open"


LABELED = QuestionSpec(
    key="more",
    text="How much?",
    choices=(Choice(value="4", label="Add $4"), Choice(value="stop", label="Stop")),
    on_expire="default",
    default="stop",
    expires_in=60,
)


async def test_people_read_the_label_of_an_answer_and_programs_its_value(
    cli: Cli, make: Factory, rt: Runtime, clock: Clock
) -> None:
    work = await make.asked(LABELED)
    assert "default: 'Stop'" in (await cli("questions", work.name)).out
    name = f"{work.name}/1"
    (await cli("answer", name, "5")).refused(2, "choose: 1 Add $4, 2 Stop")
    assert (await cli("answer", name, "1")).out == f"{name} answered: Add $4; job resumed\n"
    assert "(cli) answers Add $4, " in (await cli("show", work.name)).out
    events = (await cli("events", "--job", work.name)).out
    assert "answered: Add $4 (" in events
    assert "answered: 4" not in events
    listed = (await cli("events", "--job", work.name, "--json")).out
    assert '"value": "4"' in listed
    question = await rt.questions.get(work.number, 1)
    assert resolution_text(question) == "was answered by root: Add $4"
    [asked] = (await cli("show", work.name, "--json")).json["questions"]
    assert asked["resolution"]["value"] == "4"
    late = await make.asked(LABELED)
    await clock.forward(61)
    await rt.expiry.expire(LeaderTerm())
    events = (await cli("events", "--job", late.name)).out
    assert "the default counts: Stop" in events
    assert "was answered by policy: Stop" in (await cli("show", late.name)).out
