"""Answers and approvals, also while other people answer."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from draftsman.jobs.job import Source, Status
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.people.actor import Actor
from draftsman.questions.question import OnExpire, Question, QuestionKind
from draftsman.questions.question_spec import Choice, QuestionSpec
from draftsman.runtime import Runtime
from draftsman_testing.factories import GATE, QUESTION, Factory
from draftsman_testing.people import People
from draftsman_tui.dashboard.questions import actions as question_actions
from draftsman_tui.dashboard.questions.answer_dialog import AnswerDialog
from draftsman_tui.dashboard.widgets.inputs import MultilineInput
from tests.core.worker.agent_jobs import job_at_gate
from tests.tui.dashboard import fixtures_data
from tests.tui.dashboard.pilot import open_dashboard

MANY = QuestionSpec(
    key="many",
    text="Which?",
    choices=tuple(f"v{n}" for n in range(1, 15)),
    freeform=True,
    on_expire=OnExpire.DEFAULT,
    default="v3",
)
ACTION = {"push": "main", "to": "x" * 40}
OLD, NEW = (
    {
        f"{nth}{name}.py": "".join(f"{age} {name} {n}\n" for n in range(60))
        for nth, name in enumerate(("one", "two", "three"), 1)
    }
    for age in ("old", "new")
)


@pytest.fixture(autouse=True)
def _poll_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Poll open questions without a pause."""
    monkeypatch.setattr(question_actions, "POLL_INTERVAL", 0.05)


async def test_numbered_choices_and_multiline_answers(
    make: Factory, rt: Runtime, owner: Actor
) -> None:
    first = (await make.asked(MANY)).number
    second = (await make.asked(MANY)).number
    async with open_dashboard(rt, owner, view="inbox", size=(80, 24)) as seen:
        await seen.rows(f"D-{first}/1", f"D-{second}/1")
        await seen.press("a")
        await seen.dialog("AnswerDialog")
        await seen.see("D-1/1 for ben, root", "expires in", "default: 'v3'", "3  v3 (default)")
        await seen.press("9", "9")
        await seen.see("invalid choice 99; choose 1 to 14")
        await seen.press("1", "3", "backspace", "2")
        await seen.see("enter: choose 12, v12")
        await seen.press("enter")
        assert "v12" in await seen.wait_for_toast("answered")
        await seen.rows(f"D-{second}/1")
        await seen.press("a")
        await seen.dialog("AnswerDialog")
        await seen.see("number, enter: choose   tab: free text   t: request   esc: back")
        await seen.press("tab", "1", "ctrl+j", "2")
        await seen.see("enter: submit   ctrl+j: new line   tab: choices   alt+t: request")
        await seen.paste("\n\tthree\n")
        await seen.press("enter")
        await seen.wait_for_toast("D-2/1 answered")
    _, (answer,) = await rt.questions.of_job(second)
    assert answer.payload["text"] == "1\n2\n\tthree"


async def test_many_choices_take_only_the_rows_that_they_need(
    make: Factory, rt: Runtime, owner: Actor
) -> None:
    await make.asked(MANY)
    for size, is_tall in (((100, 44), False), ((100, 24), True)):
        async with open_dashboard(rt, owner, view="inbox", size=size) as seen:
            await seen.rows("D-1/1")
            await seen.press("a")
            await seen.see("number, enter: choose")
            box = seen.app.screen.query_one(".box")
            blank = [line for line in seen.lines if line.replace("│", "").strip() == ""]
            assert box.has_class("tall") is is_tall
            assert is_tall or box.size.height < len(MANY.choices) + 12, blank


async def test_the_request_is_read_beside_the_question(
    make: Factory, rt: Runtime, owner: Actor
) -> None:
    request = {"title": "Move the service", "text": "Move it to port 8443."}
    await make.asked(QUESTION, **request)
    await make.asked(GATE, **request)
    await make.asked(QuestionSpec(key="port", text="Which port?", freeform=True), payload={"n": 1})
    async with open_dashboard(rt, owner, view="inbox", size=(140, 40)) as seen:
        await seen.rows("D-1/1", "D-2/1", "D-3/1")
        await seen.press("A")
        for name, key in (("D-1/1", "t"), ("D-2/1", "t")):
            await seen.see(name, f"{key}: request")
            await seen.press(key)
            await seen.see(f"Request of {name.partition('/')[0]}", "Move it to port 8443.")
            await seen.press("escape")
            await seen.see(f"of 3 for you · {name}")
            await seen.press("s")
        await seen.see("3 of 3 for you · D-3/1", "alt+t: request", "ctrl+n: skip")
        await seen.press("t", "alt+t")
        await seen.see("Request of D-3", "n  1")
        await seen.press("escape")
        await seen.see("3 of 3 for you · D-3/1")
        assert seen.app.screen.query_one(MultilineInput).text == "t"
        await seen.press("backspace", "alt+t")
        await seen.see("Request of D-3")
        await make.answer(3, "8443", n=1, actor=owner)
        await seen.until(lambda: seen.app.screen_stack[-2].closed)  # type: ignore[attr-defined]
        await seen.press("escape")
        await seen.see("D-3/1 was answered by", "no more answers are accepted")
        await seen.press("escape")
        await seen.dialog("MainScreen")


async def test_descriptions_of_choices_are_aligned(
    make: Factory, rt: Runtime, owner: Actor
) -> None:
    named = {"safe fixes": "2 findings", "all fixes": "3 findings"}
    choices = tuple(Choice(value=value, description=text) for value, text in named.items())
    ask = QuestionSpec(key="fixes", text="Which?", choices=choices)
    await make.asked(ask)
    async with open_dashboard(rt, owner, view="inbox", size=(80, 24)) as seen:
        await seen.rows("D-1/1")
        await seen.press("a")
        await seen.see("1  safe fixes  2 findings", "2  all fixes   3 findings")


async def test_earlier_answer_is_reported_and_the_input_stays(
    make: Factory, rt: Runtime, owner: Actor, people: People
) -> None:
    first = (await make.asked(MANY)).number
    second = (await make.asked(MANY)).number
    ben = people.on("slack", "ben")
    async with open_dashboard(rt, owner, view="inbox") as seen:
        await seen.rows(f"D-{first}/1", f"D-{second}/1")
        await seen.press("a")
        await seen.dialog("AnswerDialog")
        await make.answer(first, "v2", ben)
        await seen.dialog("MainScreen")  # nothing was typed, nothing is lost
        await seen.wait_for_toast("D-1/1 was answered by ben: v2 (in slack)")
        await seen.rows(f"D-{second}/1")
        await seen.press("a")
        await seen.dialog("AnswerDialog")
        await seen.press("tab", "m", "y")
        await make.answer(second, "v1", ben)
        await seen.see("D-2/1 was answered by ben: v1 (in slack)", "my", "ctrl+y: copy")
        await seen.press("enter")
        await seen.see("D-2/1 is closed")
        await seen.press("ctrl+y")
        assert seen.app.clipboard == "my"
        await seen.press("escape")
        await seen.dialog("MainScreen")
    assert len((await rt.questions.of_job(second))[1]) == 1


async def test_own_answer_seen_as_closed_before_its_reply_closes_the_dialog_once(
    make: Factory, rt: Runtime, owner: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    polls = asyncio.Queue[str]()
    closing_text = question_actions.closing_text

    async def counted(rt: Runtime, question: Question) -> str:
        text = await closing_text(rt, question)
        polls.put_nowait(text)
        return text

    monkeypatch.setattr(question_actions, "closing_text", counted)
    await make.asked(MANY)
    async with open_dashboard(rt, owner, view="inbox") as seen:
        await seen.rows("D-1/1")
        await seen.press("a")
        await seen.dialog("AnswerDialog")
        dialog = seen.app.screen
        assert isinstance(dialog, AnswerDialog)
        submit = dialog._do

        async def slow(value: object) -> object:
            result = await submit(value)
            for _ in range(2):
                await asyncio.wait_for(polls.get(), 30)
            return result

        monkeypatch.setattr(dialog, "_do", slow)
        await seen.press("2", "enter")
        await seen.wait_for_toast("D-1/1 answered: v2")
        await seen.dialog("MainScreen")
        await seen.rows()


async def test_two_dashboards_answer_the_same_question_once(
    make: Factory, rt: Runtime, owner: Actor, people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        question_actions, "POLL_INTERVAL", 60
    )  # neither learns of the other before it is too late
    job = (await make.asked()).number
    ben = people.on(Source.TUI, "ben")
    async with open_dashboard(rt, owner) as mine, open_dashboard(rt, ben) as theirs:
        for seen in (mine, theirs):
            await seen.rows(f"D-{job}")
            await seen.press("a")
            await seen.dialog("AnswerDialog")
        await theirs.press("1")
        await theirs.wait_for_toast("answered: red")
        await mine.press("2")
        await mine.see("was already answered by ben", "your answer was recorded but has")
    questions, answers = await rt.questions.of_job(job)
    assert (questions[0].resolution or {})["value"] == "red"
    assert sorted(answer.accepted for answer in answers) == [False, True]


async def test_late_answer_offers_a_retry(make: Factory, rt: Runtime, owner: Actor) -> None:
    brief = QuestionSpec(
        key="pick", text="Which?", freeform=True, choices=("red", "blue"), expires_in=1e-6
    )
    job = (await make.asked(brief)).number
    async with open_dashboard(rt, owner) as seen:
        await seen.rows(f"D-{job}")
        await seen.press("a")
        await seen.dialog("AnswerDialog")
        await rt.expiry.expire(LeaderTerm())
        await seen.wait_for_toast("D-1/1 expired")
        await seen.dialog("MainScreen")
        await seen.press("a")
        await seen.wait_for_toast("D-1 has no open question; press w to see its state")
    late = (await make.asked(brief)).number
    async with open_dashboard(rt, owner) as seen:
        await seen.rows(f"D-{late}", f"D-{job}")
        await seen.press("a")
        await seen.dialog("AnswerDialog")
        await seen.press("tab", *"blue")
        await rt.expiry.expire(LeaderTerm())
        await seen.see("D-2/1 expired", "enter: submit late", "blue")
        await seen.press("enter")
        await seen.see("D-2/1 has expired. Retry D-2 with your answer?")
        await seen.press("y")
        await seen.wait_for_toast("D-2 retried as D-3, with your answer")
    assert (await rt.read_model.job(3)).overrides["answers"] == {"pick": "blue"}


async def test_approval_shows_changed_files_and_the_action(
    make: Factory, rt: Runtime, people: People, tmp_path: Path
) -> None:
    job, _ = await job_at_gate(rt, make, tmp_path, OLD, NEW, action=ACTION)
    async with open_dashboard(rt, people.on(Source.TUI, "dave"), view="inbox") as seen:
        await seen.rows(f"D-{job}/1")
        await seen.press("a")
        await seen.dialog("ApprovalDialog")
        await seen.see("If approved: push main to xxx", "1one.py", "2two.py +")
        await seen.press("right_square_bracket")
        await seen.see("old two 1")
        await seen.press("j", "G")
        await seen.see("new three 59")
        await seen.press("shift+tab", "home", "enter")
        await seen.see("old one 1")
        await seen.press("y")
        await seen.wait_for_toast("approved")
    assert (await rt.read_model.job(job)).status is Status.RESUMED


async def test_questions_show_their_changes_and_those_since_the_last_approval(
    make: Factory, rt: Runtime, people: People
) -> None:
    patch = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1,2 @@\n one\n+two\n"
    more = patch.replace("+1,2", "+1,3") + "+three\n"
    work = await make.running()
    await rt.changes.store(work.lease, patch.encode())
    await rt.asking.ask(work.lease, GATE)
    await make.decide(work.number, True, people.carol)
    again = await make.running(work.number)
    await rt.changes.store(again.lease, more.encode())
    await rt.asking.ask(again.lease, GATE.model_copy(update={"key": "second"}))
    async with open_dashboard(rt, people.on(Source.TUI, "dave"), view="inbox") as seen:
        await seen.rows(f"{work.name}/2")
        await seen.press("a")
        await seen.dialog("ApprovalDialog")
        await seen.see(f"+2 -0; since {work.name}/1: 1 file changed, +1 -0", "+ two", "+ three")
        await seen.press("c")
        await seen.see(f"showing the changes since {work.name}/1; c: all changes", "+ three")
        assert "+ two" not in seen.text
        await seen.press("c")
        await seen.see("+ two", "+ three")
        await seen.press("y")
        await seen.wait_for_toast("approved")
        third = await make.running(work.number)
        await rt.changes.store(third.lease, more.encode())
        await rt.asking.ask(third.lease, QUESTION)
        await seen.rows(f"{work.name}/3")
        await seen.press("a")
        await seen.see(f"+2 -0; since {work.name}/2: no changes")


async def test_approval_with_a_quorum_shows_votes(
    make: Factory, rt: Runtime, people: People
) -> None:
    work = await make.asked(GATE.model_copy(update={"quorum": 2}))
    async with open_dashboard(rt, people.on(Source.TUI, "dave"), view="inbox") as seen:
        await seen.rows(f"{work.name}/1")
        await seen.press("a")
        await seen.dialog("ApprovalDialog")
        await seen.see("2 of carol, dave", "0 of 2 approved so far")
        await make.decide(work.number, True, people.carol)
        await seen.see("1 of 2 approved so far: carol")
        await seen.press("y")
        await seen.wait_for_toast("approved")
    assert (await rt.read_model.job(work.number)).status is Status.RESUMED


async def test_approval_without_a_diff_shows_a_notice(
    make: Factory, rt: Runtime, people: People, tmp_path: Path
) -> None:
    job, _ = await job_at_gate(rt, make, tmp_path, OLD, NEW)
    await make.decide(job, True, people.carol)
    work = await make.running(job)  # of another program: the patch is that of the first gate
    await rt.asking.ask(work.lease, GATE.model_copy(update={"key": "second"}))
    empty, _ = await job_at_gate(rt, make, tmp_path / "two", OLD, {})
    async with open_dashboard(rt, people.on(Source.TUI, "dave"), view="inbox") as seen:
        await seen.rows(f"D-{job}/2", f"D-{empty}/1")
        await seen.press("a")
        await seen.dialog("ApprovalDialog")
        await seen.see(f"D-{job}/2")
        await seen.press("escape", "down", "a")
        await seen.see(f"D-{empty}/1", "no changes so far")


async def test_patch_of_the_pictures_is_a_patch_of_git(
    make: Factory, rt: Runtime, tmp_path: Path
) -> None:
    _, patch = await job_at_gate(rt, make, tmp_path, fixtures_data.BEFORE, fixtures_data.AFTER)
    assert patch.decode() == fixtures_data.PATCH


async def test_question_is_extended_after_an_invalid_duration(
    make: Factory, rt: Runtime, owner: Actor
) -> None:
    job = (await make.asked()).number
    async with open_dashboard(rt, owner, view="inbox") as seen:
        await seen.rows(f"D-{job}/1")
        await seen.press("e")
        await seen.dialog("PromptDialog")
        await seen.press(*"x", "enter")
        await seen.see("invalid duration 'x'")
        await seen.press("ctrl+u", *"never", "enter")
        await seen.wait_for_toast("never expires")
        await seen.command("approve")
        await seen.wait_for_toast("is a question, not an approval")
    assert (await rt.questions.get(job, 1)).kind is QuestionKind.INPUT
    assert (await rt.questions.get(job, 1)).expires_at is None
