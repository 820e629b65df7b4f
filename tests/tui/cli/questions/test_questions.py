"""`questions` and `extend`: the inbox, and extensions."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from draftsman.jobs.runs.run import LeaderTerm
from draftsman.questions.question import OnExpire
from draftsman.questions.question_spec import QuestionSpec
from draftsman.runtime import Runtime
from draftsman_testing.factories import GATE, QUESTION, Factory
from draftsman_testing.people import People
from tests.support.clock import Clock
from tests.support.permissions import SHOP
from tests.tui.cli.cli_runner import Cli, Terminal
from tests.tui.cli.conftest import As

RICH = QuestionSpec.model_validate(
    {
        "key": "apply",
        "text": "What should be applied?\nLook first.",
        "choices": [{"value": "safe", "label": "safe fixes", "description": "certain"}, "all"],
        "freeform": True,
        "context": "\n".join(f"line {n}" for n in range(20)),
        "on_expire": "default",
        "default": "safe",
        "expires_in": 7200,
    }
)


async def test_an_empty_inbox_shows_a_message(cli: Cli, make: Factory) -> None:
    done = await cli("questions")
    assert (done.code, done.out, done.err) == (0, "", "no open questions\n")
    assert (await cli("questions", "--json")).json == []
    number = await make.queued()
    assert f"draftsman why D-{number}" in (await cli("questions", number)).err


async def test_the_inbox_shows_choices_responders_and_expiry(cli: Cli, make: Factory) -> None:
    work = await make.asked(RICH)
    output = (await cli("questions")).out
    for text in (
        f"{work.name}/1  question for ben, root · asked ",
        "expires in 2 h, default: 'safe fixes'",
        "  What should be applied?\n  Look first.\n",
        "  | line 11\n  | … 8 more lines",
        "    1  safe fixes  certain\n    2  all",
        f"draftsman answer {work.name}/1 NUMBER, or free text",
    ):
        assert text in output, output


async def test_an_approval_shows_its_approvers_and_its_action(cli: Cli, make: Factory) -> None:
    gate = GATE.model_copy(
        update={"approvers": ("leads",), "quorum": 2, "action": {"to": "origin", "push": "x"}}
    )
    work = await make.asked(gate)
    output = (await cli("questions", work.name)).out
    assert "approval for 2 of carol, dave" in output
    assert "  if approved: push x to origin\n" in output
    assert f"draftsman approve {work.name}/1" in output


async def test_a_row_shows_the_requester_and_the_repository(
    cli: Cli, make: Factory, people: People
) -> None:
    job = {"title": "Tidy up", "repo": "https://git.example/acme/pay", "agent": "tidy"}
    work = await make.asked(QUESTION, actor=people.anna, type="run_agent", **job)
    assert "  Tidy up · acme/pay · tidy · for anna\n" in (await cli("questions")).out, (
        "a single one"
    )
    other = await make.asked()
    listed = await cli("questions")
    assert listed.out.split()[:2] == ["QUESTION", "KIND"]
    assert [line.split()[0] for line in listed.out.splitlines()[1:]] == [
        f"{work.name}/1",
        f"{other.name}/1",
    ]
    assert listed.err == (
        "2 open questions, 2 for you; to read and answer one: draftsman questions JOB\n"
    )
    assert "noop" not in (await cli("questions", "--where", "by:anna")).out
    gates = [await make.asked(GATE.model_copy(update={"approvers": ("dave",)})) for _ in range(2)]
    assert len(gates) == 2
    filtered = await cli("questions", "--where", "kind:approval")
    assert filtered.err.startswith("2 open questions, 0 for you;")
    assert "  noop · for root\n" in (await cli("questions", other.name)).out
    listing = (await cli("questions", work.name, "--json")).json[0]
    about = [listing[name] for name in ("title", "repo", "requester", "agent")]
    assert about == ["Tidy up", "acme/pay", "anna", "tidy"]


async def test_questions_are_ordered_by_expiry(cli: Cli, make: Factory) -> None:
    never = await make.asked(QUESTION.model_copy(update={"never_expires": True}))
    late = await make.asked()
    soon = await make.asked(QUESTION.model_copy(update={"expires_in": 60}))
    listing = (await cli("questions", "--json")).json
    assert [entry["job"] for entry in listing] == [soon.number, late.number, never.number]
    assert listing[2]["expires_at"] is None
    assert "no deadline" in (await cli("questions", never.number)).out


async def test_the_inbox_fits_80_columns(make: Factory, terminal: Callable[..., Terminal]) -> None:
    text = {"text": "Why is this so very long? " * 20, "context": "y" * 200}
    await make.asked(RICH.model_copy(update=text))
    screen = terminal("questions")
    assert screen.end() == 0
    assert max(map(len, screen.plain.splitlines())) <= 80


async def test_an_expiry_is_extended_or_removed(cli: Cli, make: Factory, rt: Runtime) -> None:
    work = await make.asked(QUESTION.model_copy(update={"expires_in": 600}))
    done = await cli("extend", f"{work.name}/1", "2h")
    assert done.out.startswith(f"{work.name}/1 expires in 2.2 h")
    question = await rt.questions.get(work.number, 1)
    assert question.expires_at is not None
    assert 7700 < (question.expires_at - datetime.now(UTC)).total_seconds() <= 7800
    assert (await cli("extend", f"{work.name}/1", "never", "--json")).json["expires_at"] is None
    (await cli("extend", f"{work.name}/1", "never")).refused(1, "never expires; nothing to extend")
    assert (await cli("extend", f"{work.name}/1", "2h")).out.startswith(
        f"{work.name}/1 expires in 4.2 h"
    )


async def test_extend_refuses_invalid_questions(as_: As, cli: Cli, make: Factory) -> None:
    work = await make.asked()
    name = f"{work.name}/1"
    (await cli("extend", name, "soon")).refused(2, "or never")
    (await cli("extend", work.name, "2h")).refused(2, name)
    (await cli("extend", f"{work.name}/2", "2h")).refused(3, f"{work.name}/2")
    (await cli("extend", f"{work.name}/x", "2h")).refused(2, "use a name such as D-142/2")
    (await as_("ben")("extend", name, "2h")).refused(1, "may not extend", "olga")
    await make.answer(work.number, "red")
    (await cli("extend", name, "2h")).refused(1, f"{name} was already answered by root")


async def test_an_escalation_is_shown_before_and_after(
    cli: Cli, make: Factory, rt: Runtime, clock: Clock
) -> None:
    later = {"on_expire": OnExpire.ESCALATE, "escalate_to": "leads", "expires_in": 7200.0}
    work = await make.asked(QUESTION.model_copy(update=later))
    assert "expires in 2 h, then escalates to leads\n" in (await cli("questions")).out
    await clock.forward(7300)
    await rt.expiry.expire(LeaderTerm())
    output = (await cli("questions")).out
    assert "question for ben, carol, dave, root · asked" in output
    assert "escalated to leads" in output
    assert "is asked too" not in output
    assert "escalated to leads" in (await cli("show", work.name)).out
    assert "expired, and leads may answer it" in (await cli("events", work.name)).out
    assert (await cli("questions", "--json")).json[0]["escalate_to"] == "leads"


async def test_identical_questions_of_three_jobs_are_shown_once_and_answered_together(
    cli: Cli, make: Factory
) -> None:
    jobs = [await make.asked(repo=SHOP) for _ in range(3)]
    shown = (await cli("questions")).out
    names = ", ".join(work.name for work in jobs)
    assert shown.count("Which one?") == 1
    assert f"3 jobs ask this: {names}. An answer counts for all." in shown
    assert len((await cli("questions", "--json")).json) == 3
    assert f"3 jobs ask this: {names}. An answer counts for all." in (
        (await cli("show", jobs[1].name)).out
    )
    assert "1  open question;" in (await cli("stats")).out
    assert f"{jobs[2].name}/1" in (await cli("questions", jobs[2].name)).out
    fourth = await make.asked(repo=SHOP)
    only = (await cli("answer", f"{fourth.name}/1", "blue", "--only")).out
    assert "also answered" not in only
    answered = (await cli("answer", f"{jobs[1].name}/1", "red")).out
    assert f"also answered: {jobs[0].name}/1, {jobs[2].name}/1" in answered
    assert (await cli("questions")).err == "no open questions\n"
