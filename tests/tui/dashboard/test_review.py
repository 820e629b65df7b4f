"""Review of questions in turn, and answers to several marked questions."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest

from draftsman.database.database import Connection
from draftsman.errors import DatabaseUnreachable
from draftsman.jobs.job import Source, Status
from draftsman.people.actor import Actor
from draftsman.questions.question import QuestionStatus
from draftsman.questions.question_spec import QuestionSpec
from draftsman.questions.response import Response
from draftsman.questions.service.questions import Questions
from draftsman.runtime import Runtime
from draftsman_testing.factories import GATE, QUESTION, Factory
from draftsman_testing.people import People
from draftsman_testing.waits import wait_blocked
from draftsman_tui.dashboard.dialogs.simple_dialogs import ConfirmDialog
from draftsman_tui.dashboard.questions import bulk_answers
from draftsman_tui.dashboard.questions.key_guard import RELEASED
from draftsman_tui.dashboard.questions.question_dialog import wrap_hints
from draftsman_tui.dashboard.tables.screen import MainScreen
from tests.tui.dashboard.pilot import open_dashboard

WORDS = QuestionSpec(key="words", text="What is it called?", freeform=True)
YES = QuestionSpec(key="yes", text="Go on?", choices=["no", "yes"])


def test_hints_are_wrapped_between_keys() -> None:
    hints = "1-2: choose   t: request\ns: skip   esc: end review"
    assert wrap_hints(hints, 24) == "1-2: choose   t: request\ns: skip\nesc: end review"
    assert wrap_hints(hints, 80) == hints


async def test_review_opens_each_question_and_ends_at_zero(
    make: Factory, rt: Runtime, owner: Actor
) -> None:
    yes = await make.asked(YES, title="Refunds", repo="https://git.example/acme/pay")
    red, words = [await make.asked(spec) for spec in (QUESTION, WORDS)]
    async with open_dashboard(rt, owner, view="inbox") as seen:
        await seen.rows("D-1/1", "D-2/1", "D-3/1")
        await seen.press("A")
        hints = "s: skip   esc: end review"
        await seen.see("1 of 3 for you · D-1/1 for", "Refunds · acme/pay", hints)
        await seen.press("y")
        await seen.see("2 of 3 for you · D-2/1 for", "1  red")
        await make.answer(red.number, "blue")
        await seen.see("D-2/1 was answered by", "no more answers are accepted")
        await seen.press("s")
        await seen.see("3 of 3 for you · D-3/1 for", "What is it called?")
        late = await make.asked(YES)
        await seen.type("s3")
        await seen.press("enter")
        await seen.see("4 of 4 for you · D-4/1 for")
        await seen.press("s")
        await seen.wait_for_toast("No more questions: 2 answered; 2 skipped")
        await seen.dialog("MainScreen")
        await seen.rows(f"{late.name}/1")
        await seen.press("A")
        await seen.see("1 of 1 for you · D-4/1")
        await seen.press("escape")
        await seen.dialog("MainScreen")
    values = [(await rt.questions.get(job.number, 1)).resolution for job in (yes, red, words)]
    assert [(value or {}).get("value") or (value or {}).get("text") for value in values] == [
        *("yes", "blue", "s3")
    ]


async def test_an_answer_without_a_database_is_kept_and_can_be_repeated(
    make: Factory, rt: Runtime, owner: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    submitted: list[str] = []
    submit = Questions.answer

    async def fail_once(
        self: Questions, job: int, ordinal: int, response: Response, *rest: Any, **options: Any
    ) -> Any:
        submitted.append(response.source_event_id)
        if len(submitted) == 1:
            raise DatabaseUnreachable("the database cannot be reached")
        return await submit(self, job, ordinal, response, *rest, **options)

    monkeypatch.setattr(Questions, "answer", fail_once)
    await make.asked(WORDS)
    async with open_dashboard(rt, owner, view="inbox") as seen:
        await seen.rows("D-1/1")
        await seen.press("A")
        await seen.see("1 of 1 for you · D-1/1")
        await seen.type("s3")
        await seen.press("enter")
        await seen.see("not confirmed, answer again: the database cannot be reached", "s3")
        await seen.press("enter")
        await seen.wait_for_toast("No more questions: 1 answered")
    assert len(submitted) == 2
    assert len(set(submitted)) == 1, "the same event"


async def test_review_of_marked_approvals_shows_the_keys_of_a_decision(
    make: Factory, rt: Runtime, people: People
) -> None:
    gates = [await make.asked(GATE) for _ in range(3)]
    carol = people.on(Source.TUI, "carol")
    async with open_dashboard(rt, carol, view="inbox") as seen:
        await seen.rows(*(f"{gate.name}/1" for gate in gates))
        await seen.press("space", "space", "A")
        await seen.see(
            "1 of 2 selected · D-1/1 needs approval from carol, dave", "y: approve", "s: skip"
        )
        await seen.press("y")
        await seen.see("2 of 2 selected · D-2/1")
        await seen.press("n")
        await seen.wait_for_toast("No more questions: 2 answered")
    statuses = [(await rt.read_model.job(gate.number)).status for gate in gates]
    assert statuses == [Status.RESUMED, Status.FAILED, Status.WAITING_FOR_APPROVAL]


@pytest.mark.parametrize(("spec", "key"), [(GATE, "y"), (QUESTION, "2")])
async def test_a_question_that_closes_in_a_review_stays_until_a_key(
    make: Factory, rt: Runtime, owner: Actor, people: People, spec: QuestionSpec, key: str
) -> None:
    first, second = [await make.asked(spec) for _ in range(2)]
    responder = people.on(Source.TUI, "carol") if spec is GATE else owner
    async with open_dashboard(rt, responder, view="inbox") as seen:
        await seen.rows("D-1/1", "D-2/1")
        await seen.press("A")
        await seen.see("1 of 2 for you · D-1/1")
        await rt.job_control.cancel(first.number, owner)
        await seen.see("D-1/1 was canceled", "s: next question   esc: end review")
        await seen.press(key)
        await seen.see("D-1/1 is closed; s: next question")
        await seen.press("s")
        await seen.see("2 of 2 for you · D-2/1")
        assert (await rt.questions.get(second.number, 1)).status is QuestionStatus.OPEN
        await seen.press("escape")
        await seen.dialog("MainScreen")


async def test_the_number_that_was_refused_as_held_can_be_pressed_again(
    make: Factory, rt: Runtime, owner: Actor
) -> None:
    work = await make.asked(QUESTION)
    async with open_dashboard(rt, owner, view="inbox") as seen:
        await seen.rows("D-1/1")
        await seen.press("A")
        await seen.see("1 of 1 for you · D-1/1")
        guard = seen.app.session.key_guard
        guard.clock, clock = lambda: -math.inf, guard.clock
        await seen.press("2")
        await seen.see("D-1/1 has just opened; press the key again")
        guard.clock = lambda: clock() + RELEASED
        await seen.press("2")
        await seen.wait_for_toast("No more questions: 1 answered")
    assert ((await rt.questions.get(work.number, 1)).resolution or {})["value"] == "blue"


@pytest.mark.parametrize(("key", "ends"), [("enter", False), ("escape", True)])
async def test_a_key_between_two_questions_of_a_review_is_not_for_the_table(
    make: Factory, rt: Runtime, owner: Actor, conn: Connection, key: str, ends: bool
) -> None:
    for spec in (QUESTION, YES, WORDS):
        await make.asked(spec)
    async with open_dashboard(rt, owner, view="inbox") as seen:
        await seen.rows("D-1/1", "D-2/1", "D-3/1")
        await seen.press("A")
        await seen.see("1 of 3 for you · D-1/1")
        async with rt.db.connection() as holder, holder.transaction():
            await holder.execute("LOCK TABLE draftsman.question_views IN EXCLUSIVE MODE")
            await seen.press("1")
            await seen.dialog("MainScreen")
            await wait_blocked(conn, by=holder.info.backend_pid)
            await seen.press(key)
        await seen.see("2 of 3 for you · D-2/1")
        assert [type(screen) for screen in seen.app.screen_stack[1:-1]] == [MainScreen]
        await seen.press("2")
        if ends:
            await seen.dialog("MainScreen")
        else:
            await seen.see("3 of 3 for you · D-3/1")
            await seen.press("escape")
        await seen.until(lambda: not seen.app.session.is_reviewing)
        await seen.press("enter")
        await seen.dialog("JobScreen")


async def test_marked_questions_with_the_same_choices_get_one_answer(
    make: Factory, rt: Runtime, owner: Actor
) -> None:
    jobs = [await make.asked() for _ in range(3)]
    other = await make.asked(WORDS)
    async with open_dashboard(rt, owner, view="inbox", size=(120, 30)) as seen:
        await seen.rows("D-1/1", "D-2/1", "D-3/1", "D-4/1")
        await seen.press("space", "space", "space", "space", "a")
        await seen.wait_for_toast("different choices; press A to review them in turn")
        await seen.press("y")
        await seen.wait_for_toast("different choices")
        await seen.press("space", "y")
        await seen.wait_for_toast("are questions, not approvals")
        await seen.press("a")
        await seen.see(" One answer for 3 questions: D-1/1, D-2/1, D-3/1", "2  blue")
        await seen.press("2")
        await seen.see("Answer 3 questions?", "Answer: blue", "D-3/1  noop")
        await make.answer(jobs[1].number, "red")
        await seen.press("y")
        await seen.wait_for_toast("D-1/1, D-3/1 answered")
        await seen.wait_for_toast("D-2/1: your answer is already recorded: red")
        await seen.rows("D-4/1")
    resolutions = [(await rt.questions.get(job.number, 1)).resolution or {} for job in jobs]
    assert [resolution["value"] for resolution in resolutions] == ["blue", "red", "blue"]
    assert (await rt.questions.get(other.number, 1)).status is QuestionStatus.OPEN


async def test_one_answer_for_questions_of_different_texts_shows_each(
    make: Factory, rt: Runtime, owner: Actor
) -> None:
    specs = [
        YES.model_copy(update={"key": f"refund-{euros}", "text": f"Refund {euros} euros?"})
        for euros in (100, 110, 110, 130)
    ]
    numbers = [(await make.asked(spec)).number for spec in specs[:3]]
    numbers.append((await make.asked_at_once(specs[3], QUESTION, specs[0])).number)
    texts = ("Refund 100 euros?", "Refund 110 euros?", "Refund 130 euros?")
    async with open_dashboard(rt, owner, view="inbox", size=(80, 24)) as seen:
        await seen.rows(*(f"D-{job}/1" for job in numbers), "D-4/2", "D-4/3")
        await seen.press(*["space"] * 4, "down", "space", "a")
        await seen.see(" One answer for 5 questions", *texts)
        assert seen.text.count("Refund 110 euros?") == 1
        await seen.press("2")
        await seen.see("Answer 5 questions?", "Answer: yes", *texts)
        await seen.press("enter")
        await seen.dialog("MainScreen")
        assert not (await rt.questions.of_job(1))[1]
        await seen.command("answer yes")
        await seen.see("Answer 5 questions?", "Answer: yes", *texts)
        await seen.press("y")
        await seen.wait_for_toast("D-4/1, D-4/3 answered: yes; job waiting for input")
        await seen.rows("D-4/2")


@dataclass
class Marked:
    """The screen of an inbox whose rows are older than the questions."""

    rt: Runtime
    actor: Actor
    ids: list[str]
    messages: list[str] = field(default_factory=list)

    session = SimpleNamespace(undo=SimpleNamespace(seconds=0))

    def jobs(self) -> list[int]:
        return [int(name.partition("/")[0][2:]) for name in self.ids]

    async def ask(self, dialog: ConfirmDialog) -> bool:
        return True

    def set_timer(self, *_: object) -> Any:
        return SimpleNamespace(stop=lambda: None)

    def keep_marked(self, _: object) -> None:
        pass

    def show_message(self, text: str) -> None:
        self.messages.append(text)


async def test_an_answer_of_marked_rows_is_not_for_later_questions_of_their_jobs(
    make: Factory, rt: Runtime, owner: Actor
) -> None:
    jobs = [await make.asked(YES) for _ in range(3)]
    await make.answer(jobs[0].number, "no")
    again = await make.running(jobs[0].number)
    assert await rt.asking.ask(again.lease, YES.model_copy(update={"key": "again"})) == "D-1/2"
    screen = Marked(rt, owner, ["D-1/1", "D-2/1", "D-3/1"])
    assert await bulk_answers.apply(cast("Any", screen), None, "yes")
    assert screen.messages == ["D-2/1, D-3/1 answered: yes; job resumed"]
    assert (await rt.questions.get(1, 2)).status is QuestionStatus.OPEN


async def test_marked_approvals_are_decided_after_a_confirmation(
    make: Factory, rt: Runtime, people: People
) -> None:
    push = GATE.model_copy(update={"action": {"to": "origin", "push": "draftsman/D-1"}})
    gates = [await make.asked(push, title="Tidy up") for _ in range(4)]
    carol = people.on(Source.TUI, "carol")
    async with open_dashboard(rt, carol, size=(120, 30)) as seen:
        await seen.rows("D-1", "D-2", "D-3", "D-4")
        await seen.press("space", "space", "y")
        await seen.see("Approve 2 requests?", "D-1/1  Tidy up", "Deploy?")
        await seen.see("If approved: push draftsman/D-1 to origin")
        await seen.press("y")
        await seen.wait_for_toast("D-1/1, D-2/1 approved")
        await seen.command("inbox")
        await seen.rows("D-3/1", "D-4/1")
        await seen.press("space", "space", "a")
        await seen.see("1  approve all 2", "2  deny all 2")
        await seen.press("2")
        await seen.see("Reason to deny 2 requests?")
        await seen.type("friday")
        await seen.press("enter")
        await seen.see("Deny 2 requests?", "Reason: friday", "D-3/1  Tidy up", "D-4/1  Tidy up")
        await seen.press("y")
        await seen.wait_for_toast("D-3/1, D-4/1 denied")
    jobs = [await rt.read_model.job(gate.number) for gate in gates]
    assert [job.status for job in jobs] == [Status.RESUMED] * 2 + [Status.FAILED] * 2
    assert jobs[2].last_error == "denied by carol: friday"


async def test_a_dialog_names_the_jobs_for_which_an_answer_counts(
    make: Factory, rt: Runtime, owner: Actor
) -> None:
    for _ in range(3):
        await make.asked(YES, repo="https://git.example/acme/pay")
    async with open_dashboard(rt, owner, view="inbox") as seen:
        await seen.see("3 jobs")
        await seen.press("A")
        await seen.see(
            "1 of 1 for you · D-1/1", "3 jobs ask this: D-1, D-2, D-3. An answer counts for"
        )
        await seen.press("y")
        await seen.wait_for_toast("No more questions: 1 answered")


async def test_questions_are_acknowledged_snoozed_and_delegated_in_a_review(
    make: Factory, rt: Runtime, owner: Actor
) -> None:
    for spec in (QUESTION, GATE, WORDS):
        await make.asked(spec)
    async with open_dashboard(rt, owner, view="inbox", size=(140, 40)) as seen:
        await seen.rows("D-1/1", "D-2/1", "D-3/1")
        await seen.press("A")
        await seen.see("1 of 3 for you · D-1/1", "i: acknowledge   I: snooze   D: delegate")
        await seen.press("i")
        await seen.see("D-1/1 acknowledged until", "1 of 3 for you · D-1/1")
        await seen.press("I")
        await seen.see("Snooze D-1/1 for how long?")
        await seen.press("escape")
        await seen.see("1 of 3 for you · D-1/1")
        await seen.press("s")
        await seen.see("2 of 3 for you · D-2/1")
        await seen.press("D")
        await seen.see("Delegate D-2/1 to whom?")
        await seen.type("nobody")
        await seen.press("enter")
        await seen.see("unknown person 'nobody'")
        await seen.press(*["backspace"] * 6)
        await seen.type("dave 2h")
        await seen.press("enter")
        await seen.see("3 of 3 for you · D-3/1", "alt+i: acknowledge", "alt+g: delegate")
        await seen.press("alt+s")
        await seen.see("Snooze D-3/1 for how long?")
        await seen.type("2h")
        await seen.press("enter")
        await seen.wait_for_toast("No more questions: 0 answered; 3 skipped")
        await seen.see("2 questions for you")
        await seen.press("A")
        await seen.see("1 of 2 for you · D-1/1", f"{owner.voter} works on it")
        await seen.press("s")
        await seen.see("2 of 2 for you · D-3/1")
        await seen.press("escape")
        await seen.dialog("MainScreen")
        await seen.command("inbox kind:approval")
        await seen.rows("D-2/1")
        await seen.press("a")
        await seen.see("D-2/1 needs approval", "delegated to dave")
        await seen.press("escape")
    first, second, third = await rt.questions.open()
    assert (first.acknowledged_by, second.delegated_to) == (owner.voter, "dave")
    (snooze,) = await rt.acknowledgments.delays(third.job, 1)
    assert snooze.person == owner.voter
