"""Answers of a type: checked when a person answers, read by handlers as values of the type."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from enum import Enum, StrEnum
from typing import Any, Final, Literal
from zoneinfo import ZoneInfo

import pytest

from draftsman import Answered, Ask, BlockingRunContext, Done, Outcome, Person, RunContext
from draftsman.database.database import Connection
from draftsman.deliveries.documents.plain import how_to_answer
from draftsman.errors import UsageError
from draftsman.handlers.blocking_context import run_in_thread
from draftsman.handlers.worker_run import build_ask
from draftsman.jobs.job import Status
from draftsman.questions.answer_kind import AnswerKind, normalize_answer
from draftsman.questions.question_spec import QuestionSpec
from draftsman.runtime import Runtime
from draftsman.testing import run_handler
from draftsman_testing.factories import Factory
from tests.core.worker.workers import (
    running_worker,
    runtime_with,
    wait_for_end,
    wait_for_question,
    wait_for_status,
)
from tests.support.cases import cases


class Color(Enum):
    RED = "red"
    BLUE = 2


class Region(StrEnum):
    EU = "eu"


ANSWERS: Final[list[tuple[Any, str, Any]]] = [
    (int, " +031 ", 31),
    (int, "-5", -5),
    (Decimal, "12.50", Decimal("12.50")),
    (float, "12.50", 12.5),
    (date, "2026-11-30", date(2026, 11, 30)),
    (date, "20261130", date(2026, 11, 30)),
    (bool, "Yes", True),
    (bool, "2", False),
    (str, " as you like ", "as you like"),
    (Literal["eu", "us"], "us", "us"),
    (Literal[1, 2, "many"], "2", 2),
    (Color, "red", Color.RED),
    (Color, "blue", Color.BLUE),
    (Region, "EU", Region.EU),
    (Person, "anna", Person("anna", frozenset({"approver"}), zone=ZoneInfo("UTC"))),
]
NUMBER: Final = "enter a whole number, such as 31"
REFUSED: Final[list[tuple[Any, str, str]]] = [
    (int, "many", f"'many' is not a whole number; {NUMBER}"),
    (int, "12.5", f"'12.5' is not a whole number; {NUMBER}"),
    (int, "1" * 31, f"is not a whole number; {NUMBER}"),
    (Decimal, "1e9", "'1e9' is not a number; enter a number, such as 12.50"),
    (Decimal, "NaN", "'NaN' is not a number; enter a number, such as 12.50"),
    (date, "tomorrow", "'tomorrow' is not a date; enter a date, such as 2026-11-30"),
    (date, "2026-02-30", "'2026-02-30' is not a date; enter a date, such as 2026-11-30"),
    (bool, "maybe", "'maybe' is not a choice; choose: 1 yes, 2 no"),
    (Literal["eu", "us"], "de", "'de' is not a choice; choose: 1 eu, 2 us"),
    (Color, "2nd", "'2nd' is not a choice; choose: 1 red, 2 BLUE"),
    (Person, "eve", "'eve' is not a choice; choose: 1 anna, 2 ben"),
]


def _settings(rt: Runtime) -> Any:
    people = {"anna": {"roles": ["approver"]}, "ben": {}}
    return type(rt.settings).model_validate({"people": people})


async def _answered(rt: Runtime, type: Any, text: str) -> Answered[Any]:
    answers: list[Answered[Any]] = []

    def asks(ctx: BlockingRunContext) -> Outcome:
        answer: Any = ctx.ask("it", "Which?", type=type)
        answers.append(answer)
        return Done({})

    async def handler(ctx: RunContext) -> Outcome:
        return await run_in_thread(ctx, asks)

    await run_handler(handler, answers={"it": text}, settings=_settings(rt))
    return answers[0]


@cases("type, text, value", ANSWERS)
async def test_an_answer_has_a_value_of_the_type(
    rt: Runtime, type: Any, text: str, value: Any
) -> None:
    answer = await _answered(rt, type, text)
    assert (answer.value, answer.value.__class__) == (value, value.__class__)


@cases("type, text, refusal", REFUSED)
async def test_another_answer_is_refused_with_what_is_allowed(
    rt: Runtime, type: Any, text: str, refusal: str
) -> None:
    with pytest.raises(AssertionError) as refused:
        await _answered(rt, type, text)
    assert str(refused.value).endswith(refusal)
    assert str(refused.value).startswith("the answer to 'it' does not fit: D-1/1: ")


async def test_a_refused_answer_leaves_the_question_and_the_next_run_gets_the_value(
    rt: Runtime, make: Factory
) -> None:
    async def handler(ctx: RunContext) -> Outcome:
        week, due = await ctx.ask_all(
            Ask("week", "Which week?", type=int), Ask("due", "When?", type=date)
        )
        assert isinstance(week, Answered)
        assert isinstance(due, Answered)
        return Done({"weeks": week.value + 1, "year": due.value.year})

    number = await make.queued(queue="default")
    async with running_worker(runtime_with(rt), {"noop": handler}):
        await wait_for_status(rt, number, Status.WAITING_FOR_INPUT)
        with pytest.raises(UsageError, match="is not a whole number"):
            await make.answer(number, "next")
        week, due = sorted(await rt.questions.open(number), key=lambda item: item.ordinal)
        assert how_to_answer(week).endswith("'a whole number, such as 31'")
        assert how_to_answer(due).endswith("'a date, such as 2026-11-30'")
        await make.answer(number, "31")
        await make.answer(number, "2026-11-30", n=2)
        job = await wait_for_end(rt, number)
    assert (job.status, job.result) == (Status.COMPLETED, {"weeks": 32, "year": 2026})


async def test_a_person_is_chosen_from_the_directory_of_the_time(
    rt: Runtime, make: Factory
) -> None:
    """A person who comes later changes no question that was asked."""

    async def handler(ctx: RunContext) -> Outcome:
        answer = await ctx.ask("who", "Who?", type=Person)
        assert isinstance(answer, Answered)
        return Done({"who": answer.value.name, "is_approver": "approver" in answer.value.roles})

    number = await make.queued(queue="default")
    services = runtime_with(rt)
    async with running_worker(services, {"noop": handler}):
        await wait_for_question(rt, number)
        (question,) = await rt.questions.open(number)
        assert question.values() == sorted(rt.policy.people)
        people = services.policy.people
        services.policy.people = {**people, "zoe": Person("zoe", frozenset())}
        await make.answer(number, "carol")
        job = await wait_for_end(rt, number)
    assert job.result == {"who": "carol", "is_approver": True}


async def test_the_default_of_a_type_is_the_value_after_the_time(rt: Runtime) -> None:
    async def handler(ctx: RunContext) -> Outcome:
        answers = await ctx.ask_all(
            Ask("week", "Week?", type=int, default=31, on_expire="default", expires_in=1),
            Ask("sure", "Sure?", type=bool, default=False, on_expire="default", expires_in=1),
        )
        return Done({"values": [answer.value for answer in answers]})

    result = await run_handler(handler, answers={"week": None, "sure": None})
    assert result.outcome == Done({"values": [31, False]})


@cases(
    "options, error",
    [
        ({"type": list}, "type=list: no type of an answer; allowed: str, int, float, Decimal,"),
        ({"type": bool, "choices": ["a"]}, "question 'k': its type has the choices"),
        ({"type": Person, "freeform": True}, "question 'k': its type has the choices"),
        ({"type": int, "choices": ["1", "many"]}, "the choice or default 'many' is not a whole"),
        ({"type": int, "default": "x", "on_expire": "default"}, "'x' is not a whole number"),
        ({"type": Person, "default": "anna", "on_expire": "default"}, "takes no choices, default"),
        ({"type": Literal[1, "1"]}, "two of its values have the same text"),
        ({}, "a question needs choices, or freeform=True, or both"),
    ],
)
def test_a_type_that_cannot_be_asked_is_refused(options: dict[str, Any], error: str) -> None:
    with pytest.raises(UsageError) as refused:
        Ask("k", "?", **options)
    assert error in str(refused.value)


def test_another_option_is_a_programming_error() -> None:
    options: dict[str, Any] = {"is_permission": True}
    with pytest.raises(TypeError, match="unexpected argument 'is_permission'; allowed: choices,"):
        Ask("k", "?", **options)


async def test_a_question_for_a_person_needs_people(rt: Runtime, make: Factory) -> None:
    rt.policy.people = {}
    spec = build_ask(key="who", text="Who?", answer_kind="person")
    with pytest.raises(UsageError, match="is for a person, of whom the directory has 0"):
        await make.asked(spec)


def test_another_kind_of_answer_is_another_question() -> None:
    """An answer to the old question never counts for the new one; other digests stay."""
    specs = [QuestionSpec(key="k", text="?", freeform=True, answer_kind=kind) for kind in ANY]
    assert len({spec.digest for spec in specs}) == len(ANY)


ANY: Final = (AnswerKind.TEXT, AnswerKind.INTEGER, AnswerKind.NUMBER, AnswerKind.DATE)


@cases("kind", ANY)
async def test_the_database_accepts_what_the_programs_store(
    conn: Connection, kind: AnswerKind
) -> None:
    texts = ["31", "+031", "-5", "12.50", "1" * 31, "2026-11-30", "2026-W01-1", "x", "1e9", "٣"]
    for text in texts:
        try:
            stored = normalize_answer(kind, text)
        except ValueError:
            assert not await _accepts(conn, kind, text), (kind, text)
        else:
            assert await _accepts(conn, kind, stored), (kind, text)


async def _accepts(conn: Connection, kind: AnswerKind, text: str) -> bool:
    query = "SELECT draftsman.is_answer(%s::draftsman.answer_kind, %s)"
    return bool((await (await conn.execute(query, (kind.value, text))).fetchone() or (None,))[0])
