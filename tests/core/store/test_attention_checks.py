"""Constraints of views, acknowledgments and snoozes of questions."""

from __future__ import annotations

from typing import Final

import pytest

from draftsman.store.postgres.database import Connection
from tests.core.store.test_group_checks import insert
from tests.support.statements import CHECK, refused, run

QUESTION: Final = {"job": "1", "question": "1", "person": "''"}
EXPIRES: Final = {"expires_at": "now()"}
HOURS: Final = {"person": "'anna'", "hours": "'{09:00}'", "timezone": "'UTC'"}
QUESTIONS: Final = [
    ("question_views", {"channel": "'cli'"}, "question_views_person_check"),
    ("question_acknowledgments", EXPIRES, "question_acknowledgments_person_check"),
    ("question_snoozes", EXPIRES, "question_snoozes_person_check"),
]
ROWS: Final = [
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
TABLES: Final = (QUESTIONS, ROWS)


@pytest.mark.parametrize(("table", "columns", "constraint"), QUESTIONS)
async def test_attention_has_a_person(
    conn: Connection, table: str, columns: dict[str, str], constraint: str
) -> None:
    async with refused(CHECK, f'"{constraint}"'):
        await run(conn, insert(table, QUESTION | columns))


@pytest.mark.parametrize(("table", "columns", "constraint"), ROWS)
async def test_digests_and_identical_questions_are_whole(
    conn: Connection, table: str, columns: dict[str, str], constraint: str
) -> None:
    async with refused(CHECK, f'"{constraint}"'):
        await run(conn, insert(table, columns))
