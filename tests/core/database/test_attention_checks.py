"""Constraints of views, acknowledgments, snoozes, delegations and ladders of questions."""

from __future__ import annotations

from typing import Final

from draftsman.database.database import Connection
from tests.core.database.test_group_checks import insert
from tests.support.cases import cases
from tests.support.statements import CHECK, refused, run

QUESTION: Final = {"job": "1", "question": "1", "person": "''"}
EXPIRES: Final = {"expires_at": "now()"}
HOURS: Final = {"person": "'anna'", "hours": "'{09:00}'", "timezone": "'UTC'"}
QUESTIONS: Final = [
    ("question_views", {"channel": "'cli'"}, "question_views_person_check"),
    (
        "question_acknowledgments",
        EXPIRES | {"actor": "'cli:ben'"},
        "question_acknowledgments_person_check",
    ),
    ("question_snoozes", EXPIRES, "question_snoozes_person_check"),
]
DIGESTS: Final = [
    ("digest_questions", QUESTION | {"digest_at": "now()"}, "digest_questions_person_check"),
    ("digest_hours", HOURS | {"person": "''"}, "digest_hours_person_check"),
    ("digest_hours", HOURS | {"hours": "'{}'"}, "digest_hours_hours_check"),
    ("digest_hours", HOURS | {"hours": "'{NULL}'"}, "digest_hours_hours_check"),
    ("digest_hours", HOURS | {"timezone": "''"}, "digest_hours_timezone_check"),
    (
        "identical_questions",
        {"job": "1", "question": "1", "digest": "'x'"},
        "identical_questions_digest_check",
    ),
]
ACKNOWLEDGMENT: Final = EXPIRES | {"person": "'ben'", "actor": "'cli:ben'"}
DELEGATION: Final = EXPIRES | {"person": "'ben'", "delegated_by": "'anna'"}
STEPS: Final = """'[{"notify": ["ben"], "after": 0}]'"""
LADDER: Final = {"name": "'l'", "steps": STEPS}
NOTIFICATION: Final = {"step": "1", "recipient": "'ben'", "outcome": "'inbox'"}
ROWS: Final = [
    (
        *("question_acknowledgments", ACKNOWLEDGMENT, {"actor": "''"}),
        "question_acknowledgments_actor_check",
    ),
    ("question_delegations", DELEGATION, {"person": "''"}, "question_delegations_person_check"),
    (
        *("question_delegations", DELEGATION, {"delegated_by": "''"}),
        "question_delegations_delegated_by_check",
    ),
    ("question_ladders", LADDER, {"name": "''"}, "question_ladders_name_check"),
    ("question_ladders", LADDER, {"steps": "'{}'"}, "question_ladders_steps_check"),
    ("question_ladders", LADDER, {"step": "3"}, "question_ladders_step"),
    ("question_ladders", LADDER, {"step": "2", "due_at": "now()"}, "question_ladders_step"),
    (
        *("question_notifications", NOTIFICATION, {"step": "-1"}),
        "question_notifications_step_check",
    ),
    (
        *("question_notifications", NOTIFICATION, {"recipient": "''"}),
        "question_notifications_recipient_check",
    ),
    (
        *("question_notifications", NOTIFICATION, {"outcome": "'lost'"}),
        "question_notifications_outcome_check",
    ),
    (
        *("question_notifications", NOTIFICATION, {"outcome": "'sent'"}),
        "question_notifications_sent",
    ),
    (
        *("question_notifications", NOTIFICATION, {"away_until": "now()"}),
        "question_notifications_away",
    ),
]
PEOPLE: Final = [
    ("people", {"name": "'x'"}, {"working_hours": "''"}, "people_working_hours_check"),
    ("people", {"name": "'x'"}, {"holidays": "''"}, "people_holidays_check"),
]
TABLES: Final = (QUESTIONS, ROWS, PEOPLE, DIGESTS)


@cases(("table", "columns", "constraint"), QUESTIONS)
async def test_attention_has_a_person(
    conn: Connection, table: str, columns: dict[str, str], constraint: str
) -> None:
    async with refused(CHECK, f'"{constraint}"'):
        await run(conn, insert(table, QUESTION | columns))


@cases(("table", "columns", "constraint"), DIGESTS)
async def test_digests_and_identical_questions_are_whole(
    conn: Connection, table: str, columns: dict[str, str], constraint: str
) -> None:
    async with refused(CHECK, f'"{constraint}"'):
        await run(conn, insert(table, columns))


@cases(("table", "right", "wrong", "constraint"), ROWS + PEOPLE)
async def test_delegations_ladders_and_hours_are_complete(
    conn: Connection, table: str, right: dict[str, str], wrong: dict[str, str], constraint: str
) -> None:
    key = {} if table == "people" else {"job": "1", "question": "1"}
    async with refused(CHECK, f'"{constraint}"'):
        await run(conn, insert(table, key | right | wrong))
