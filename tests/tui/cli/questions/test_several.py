"""Commands about a job with several open questions: each is named in full."""

from __future__ import annotations

import pytest

from draftsman.jobs.job import Status
from draftsman.runtime import Runtime
from draftsman_testing.factories import GATE, QUESTION, Factory
from tests.tui.cli.cli_runner import Cli

SECOND = QUESTION.model_copy(update={"key": "second", "text": "Which other?"})
S = Status
HOW = "to approve or deny"


async def test_a_bare_job_is_ambiguous_and_the_error_names_its_questions(
    cli: Cli, make: Factory, rt: Runtime
) -> None:
    work = await make.asked_at_once(QUESTION, SECOND, GATE)
    for command in (
        ("answer", work.name, "red"),
        ("approve", work.name),
        ("extend", work.name, "1h"),
    ):
        done = await cli(*command)
        assert done.code == 2, done
        assert done.err == (
            f"draftsman: {work.name} has 3 open questions; name one of them:"
            f" {work.name}/1 (Which one?); {work.name}/2 (Which other?); {work.name}/3 (Deploy?)\n"
        )
    assert len(await rt.questions.open(work.number)) == 3


async def test_each_question_is_answered_by_its_name(cli: Cli, make: Factory, rt: Runtime) -> None:
    work = await make.asked_at_once(QUESTION, SECOND)
    assert (await cli("answer", f"{work.name}/2", "2")).code == 0
    assert (await rt.read_model.job(work.number)).status is S.WAITING_FOR_INPUT
    assert (await cli("answer", work.name, "red")).code == 2, "only a terminal confirms it"
    assert (await cli("answer", f"{work.name}/1", "red")).code == 0
    assert (await rt.read_model.job(work.number)).status is S.RESUMED


async def test_every_view_of_the_job_shows_all_its_questions(cli: Cli, make: Factory) -> None:
    work = await make.asked_at_once(QUESTION, GATE)
    name = work.name
    why = (await cli("why", name)).out
    assert [line.split("; expires")[0] for line in why.splitlines()[:3]] == [
        f"{name} waiting for approval: needs 1 answer and 1 approval",
        f"  {name}/1 needs an answer: Which one?; to answer: draftsman answer {name}/1",
        f"  {name}/2 needs approval from carol, dave: Deploy?; {HOW}: draftsman approve {name}/2",
    ]
    needs = (await cli("why", name, "--json")).json["needs"]
    assert [need["question"] for need in needs] == [f"{name}/1", f"{name}/2"]
    assert (await cli("why", f"{name}/2")).code == 0
    assert [item["question"] for item in (await cli("why", name, "--json")).json["questions"]] == [
        1,
        2,
    ]
    listed = (await cli("jobs")).out
    assert "waiting for approval" in listed
    assert f"answer {name}/1" in listed
    assert f"approve {name}/2" in listed
    shown = (await cli("show", name)).out
    assert shown.splitlines()[1].split(maxsplit=1) == ["waiting", "needs 1 answer and 1 approval"]
    assert shown.count("Which one?") == 2, "in the questions and in the event"
    assert shown.count("Deploy?") == 2
    inbox = (await cli("questions")).out
    assert f"{name}/1" in inbox
    assert f"{name}/2" in inbox
    waited = await cli("wait", name, "--timeout", "0.01s")
    assert waited.code == 5
    assert f"draftsman answer {name}/1, draftsman approve {name}/2" in waited.err


@pytest.mark.parametrize("alternatives", [False, True])
async def test_why_says_that_the_first_of_alternatives_counts(
    cli: Cli, make: Factory, alternatives: bool
) -> None:
    work = await make.asked_at_once(QUESTION, SECOND, alternatives=alternatives)
    why = (await cli("why", work.name)).out
    assert ("needs the first of 2 answers" in why) is alternatives
