"""`draftsman.testing`, with handlers as users write them."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from draftsman import Ask, Cancel, Done, Failure, Outcome, RunContext, Snooze
from draftsman.errors import AnswerTimeout, NotPermitted, UsageError
from draftsman.questions.question_spec import Choice
from draftsman.testing import Clock, Deny, Reply, RequestChanges, run_handler
from tests.support.cases import cases


async def deploy(ctx: RunContext) -> Outcome:
    """Build once, ask for the target, wait for the approval, deploy once."""
    build = await ctx.step("build", lambda _: {"image": "app:7"})
    target = await ctx.ask("target", "Where to?", choices=("staging", Choice(value="production")))
    ctx.log(f"deploying {build['image']} to {target.value}")
    await ctx.approve("go", f"Deploy to {target.value}?", approvers=["carol"])
    await ctx.sleep("settle", 60)
    await ctx.notify("deployed", key="done")
    await ctx.artifact("report.txt", b"fine", "report")
    await ctx.checkpoint({"deployed": True})
    await ctx.event("deployed", {"to": target.value})
    return Done({"to": target.value, "image": build["image"]})


async def test_a_handler_runs_through_its_questions() -> None:
    clock = Clock(datetime(2031, 5, 1, tzinfo=UTC))
    result = await run_handler(deploy, answers={"target": "2", "go": True}, clock=clock)
    assert result.outcome == Done({"to": "production", "image": "app:7"})
    assert result.runs == 4
    assert [
        (item.key, item.resolution and item.resolution["outcome"]) for item in result.questions
    ] == [
        ("target", "answered"),
        ("go", "approved"),
    ]
    assert clock.now == datetime(2031, 5, 1, 0, 1, tzinfo=UTC)
    assert result.steps == {"build": {"image": "app:7"}}
    assert result.messages == [("deployed", ())]
    assert result.artifacts == {"report.txt": b"fine"}
    assert result.checkpoint == {"deployed": True}
    assert result.events == [("deployed", {"to": "production"})]
    assert "deploying app:7 to production\n" in result.log


async def test_an_answer_that_is_missing_or_wrong_fails_the_test() -> None:
    with pytest.raises(AssertionError, match="'target'"):
        await run_handler(deploy)
    with pytest.raises(AssertionError, match="staging"):
        await run_handler(deploy, answers={"target": "mars"})
    with pytest.raises(AssertionError, match="approval"):
        await run_handler(deploy, answers={"target": "staging", "go": "yes"})


async def test_questions_of_several_tasks_are_asked_at_once() -> None:
    async def handler(ctx: RunContext) -> Outcome:
        one, two = await asyncio.gather(
            ctx.ask("one", "One?", choices=["a", "b"]),
            ctx.approve("two", "Two?"),
            return_exceptions=True,
        )
        assert not isinstance(one, BaseException)
        assert not isinstance(two, BaseException)
        return Done({"one": one.value, "two": two.approved})

    result = await run_handler(handler, answers={"one": "b", "two": True})
    assert result.outcome == Done({"one": "b", "two": True})
    assert (result.runs, [item.run for item in result.questions]) == (2, [1, 1])
    with pytest.raises(AssertionError, match="'two'"):
        await run_handler(handler, answers={"one": "b"})
    with pytest.raises(NotPermitted, match="'two'"):
        await run_handler(handler, answers={"one": "b", "two": False})


async def test_of_alternatives_the_first_of_the_answers_counts() -> None:
    async def handler(ctx: RunContext) -> Outcome:
        answers = await ctx.ask_all(
            *(Ask(key, f"{key}?", choices=["yes", "no"]) for key in ("one", "two", "three")),
            return_when="first",
        )
        return Done({"answers": [answer and answer.value for answer in answers]})

    for key, expected in {"one": ["no", None, None], "three": [None, None, "no"]}.items():
        result = await run_handler(handler, answers={key: "no"})
        assert result.outcome == Done({"answers": expected})
        outcomes = [(item.resolution or {})["outcome"] for item in result.questions]
        assert sorted(outcomes) == ["answered", "canceled", "canceled"]


async def test_a_handler_that_returns_before_it_asks_fails_the_test() -> None:
    async def handler(ctx: RunContext) -> Outcome:
        asking = asyncio.create_task(ctx.ask("one", "One?", choices=["a"]))
        await asyncio.sleep(0)
        assert not asking.done()
        return Done({})

    with pytest.raises(AssertionError, match="about to ask 'one'"):
        await run_handler(handler, answers={"one": "a"})


async def test_a_handler_that_returns_after_it_paused_fails_the_test() -> None:
    async def handler(ctx: RunContext) -> Outcome:
        try:
            await ctx.ask("go", "Go on?", choices=["yes"])
        finally:
            return Done({})  # noqa: B012

    with pytest.raises(AssertionError, match="returned Done after its run had paused"):
        await run_handler(handler, answers={"go": "yes"})


async def test_a_denial_or_an_expiry_ends_the_job_as_on_a_worker() -> None:
    with pytest.raises(NotPermitted, match="'go'"):
        await run_handler(deploy, answers={"target": "staging", "go": Deny("not today")})
    with pytest.raises(AnswerTimeout, match="'go'"):
        await run_handler(deploy, answers={"target": "staging", "go": None})


async def careful(ctx: RunContext) -> Outcome:
    decision = await ctx.approve("go", "Go?", on_deny="continue")
    if not decision.approved:
        return Cancel(decision.reason or "denied")
    color = await ctx.ask(
        "color", "Color?", choices=("red", "blue"), on_expire="default", default="red"
    )
    more = await ctx.ask("more", "More?", freeform=True, on_expire="continue")
    return Done({"color": color.value, "more": more.outcome})


async def test_rules_for_denials_and_expiry_are_followed() -> None:
    denied = await run_handler(careful, answers={"go": Deny("freeze")})
    assert denied.outcome == Cancel("freeze")
    expired = await run_handler(careful, answers={"go": True, "color": None, "more": None})
    assert expired.outcome == Done({"color": "red", "more": "expired"})


async def revising(ctx: RunContext) -> Outcome:
    """Change the plan until people approve it."""
    plan = "plan"
    while True:
        verdict = await ctx.approve(plan, f"{plan}?", on_deny="continue", on_changes="continue")
        if verdict.outcome != "changes_requested":
            return Done({"plan": plan, "approved": verdict.approved})
        plan += f", {verdict.reason}"


async def test_a_handler_makes_requested_changes() -> None:
    answers: dict[str, Reply] = {"plan": RequestChanges("faster"), "plan, faster": True}
    result = await run_handler(revising, answers=answers)
    assert result.outcome == Done({"plan": "plan, faster", "approved": True})
    with pytest.raises(AssertionError, match="D-1/1 takes no requests for changes"):
        await run_handler(careful, answers={"go": RequestChanges("faster")})

    async def told(ctx: RunContext) -> Outcome:
        options: dict[str, Any] = {"on_changes": "tell"}
        await ctx.approve("go", "Go?", **options)
        return Done({})

    with pytest.raises(UsageError, match="'go': on_changes is 'refuse' or 'continue', not 'tell'"):
        await run_handler(told)


@cases("with_lookup", [True, False])
async def test_a_lost_worker_between_an_effect_and_its_record(with_lookup: bool) -> None:
    charged: list[str] = []

    async def charge(ctx: RunContext) -> Outcome:
        def look(invocation: str) -> dict[str, str] | None:
            return {"charge": invocation} if invocation in charged else None

        def effect(invocation: str) -> dict[str, str]:
            charged.append(invocation)
            return {"charge": invocation}

        return Done(await ctx.step("charge", effect, look if with_lookup else None))

    result = await run_handler(charge, lost_after=["charge"])
    assert result.runs == 2
    assert len(charged) == (1 if with_lookup else 2)
    assert len(set(charged)) == 1


async def test_failures_and_snoozes_and_columns() -> None:
    until = datetime(2030, 1, 2, tzinfo=UTC)

    async def wait(ctx: RunContext) -> Outcome:
        saved = await ctx.saved()
        if saved is None:
            await ctx.checkpoint({"waits": True})
            return Snooze(until)
        raise Failure(f"{ctx.job.title}: {ctx.job.payload['n']}", declared="PERMANENT")

    clock = Clock()
    with pytest.raises(Failure, match="Fix it: 3"):
        await run_handler(wait, {"n": 3}, clock=clock, title="Fix it")
    assert clock.now == until
    clock.advance(timedelta(hours=1).total_seconds())
    assert clock.now.hour == 1
    with pytest.raises(TypeError, match="no_such"):
        await run_handler(wait, no_such=1)


async def test_a_return_value_that_a_worker_refuses_fails_the_test() -> None:
    async def bare(ctx: RunContext) -> Any:
        return {"to": "staging"}

    async def unstorable(ctx: RunContext) -> Outcome:
        return Done({"to": object()})

    with pytest.raises(Failure, match="returned no outcome") as caught:
        await run_handler(bare)
    assert caught.value.declared == "INVALID_OUTPUT"
    with pytest.raises(Failure, match="type object is not JSON"):
        await run_handler(unstorable)


async def test_a_handler_that_never_ends_is_reported() -> None:
    async def always(ctx: RunContext) -> Outcome:
        return Snooze(1)

    with pytest.raises(AssertionError, match="1000 runs"):
        await run_handler(always)
