"""Constraints of views, acknowledgments and snoozes of questions."""

from __future__ import annotations

from typing import Final

import pytest

from draftsman.store.postgres.database import Connection
from tests.core.store.test_group_checks import insert
from tests.support.statements import CHECK, refused, run

QUESTION: Final = {"job": "1", "question": "1", "person": "''"}
EXPIRES: Final = {"expires_at": "now()"}
QUESTIONS: Final = [
    ("question_views", {"channel": "'cli'"}, "question_views_person_check"),
    ("question_acknowledgments", EXPIRES, "question_acknowledgments_person_check"),
    ("question_snoozes", EXPIRES, "question_snoozes_person_check"),
]
TABLES: Final = (QUESTIONS,)


@pytest.mark.parametrize(("table", "columns", "constraint"), QUESTIONS)
async def test_attention_has_a_person(
    conn: Connection, table: str, columns: dict[str, str], constraint: str
) -> None:
    async with refused(CHECK, f'"{constraint}"'):
        await run(conn, insert(table, QUESTION | columns))
