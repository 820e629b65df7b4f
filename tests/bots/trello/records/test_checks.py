"""Constraints of the tables of Trello."""

from __future__ import annotations

from typing import Final

import pytest

from draftsman.database.database import Connection
from tests.support.statements import CHECK, refused, run

BOARDS: Final = [
    ({"board_id": "''"}, "trello_board_configs_board_id_check"),
    ({"labels": "'[]'"}, "trello_board_configs_labels_check"),
    ({"transition_rules": "'[]'"}, "trello_board_configs_transition_rules_check"),
    ({"queued_label_id": "''"}, "trello_board_configs_queued_label_id_check"),
    ({"ready_for_review_list_id": "''"}, "trello_board_configs_ready_for_review_list_id_check"),
    ({"webhook_id": "''"}, "trello_board_configs_webhook_id_check"),
    ({"checklists": "'some'"}, "trello_board_configs_checklists_check"),
    ({"custom_fields": "'[]'"}, "trello_board_configs_custom_fields_check"),
    ({"digest_card_id": "''"}, "trello_board_configs_digest_card_id_check"),
    ({"labels": "'{\"L\": {}}'", "queued_label_id": "'L'"}, "trello_board_configs_queued"),
]
LABELS: Final = [
    ({"card": "''"}, "trello_labels_card_check"),
    ({"label": "''"}, "trello_labels_label_check"),
    ({"episode": "-1"}, "trello_labels_episode_check"),
    ({"added_by": "''"}, "trello_labels_added_by_check"),
    ({"stage": "'begun'"}, "trello_labels_stage_check"),
    ({"episode": "0", "stage": "'pending'"}, "trello_labels_baseline"),
    ({"present": "false", "stage": "'pending'"}, "trello_labels_absent"),
]
CHECKLISTS: Final = [
    ({"card": "''"}, "trello_checklists_card_check"),
    ({"checklist": "''"}, "trello_checklists_checklist_check"),
    ({"items": "'{}'"}, "trello_checklists_items_check"),
    ({"items": "'[]'"}, "trello_checklists_items_check"),
]
DUE_DATES: Final = [
    ({"card": "''"}, "trello_due_dates_card_check"),
    ({"board": "''"}, "trello_due_dates_board_check"),
]
TABLES: Final = (BOARDS, LABELS, CHECKLISTS, DUE_DATES)


@pytest.mark.parametrize(("wrong", "constraint"), BOARDS)
async def test_a_board_has_valid_columns(
    conn: Connection, wrong: dict[str, str], constraint: str
) -> None:
    columns = {"board_id": "'B'", "name": "'Work'"}
    await _refused(conn, "trello_board_configs", columns | wrong, constraint)


@pytest.mark.parametrize(("wrong", "constraint"), LABELS)
async def test_an_episode_has_valid_columns(
    conn: Connection, wrong: dict[str, str], constraint: str
) -> None:
    columns = {
        "card": "'C'",
        "label": "'L'",
        "board": "'B'",
        "episode": "1",
        "present": "true",
        "stage": "'done'",
        "changed_at": "now()",
    }
    await _refused(conn, "trello_labels", columns | wrong, constraint)


@pytest.mark.parametrize(("wrong", "constraint"), CHECKLISTS)
async def test_a_checklist_has_valid_columns(
    conn: Connection, wrong: dict[str, str], constraint: str
) -> None:
    columns = {"card": "'C'", "job": "1", "question": "1", "checklist": "'L'"}
    columns |= {"items": "'{\"I\": 1}'"}
    await _refused(conn, "trello_checklists", columns | wrong, constraint)


@pytest.mark.parametrize(("wrong", "constraint"), DUE_DATES)
async def test_a_due_date_has_valid_columns(
    conn: Connection, wrong: dict[str, str], constraint: str
) -> None:
    columns = {"card": "'C'", "board": "'B'", "shown": "now()"}
    await _refused(conn, "trello_due_dates", columns | wrong, constraint)


async def _refused(conn: Connection, table: str, columns: dict[str, str], constraint: str) -> None:
    names = ", ".join(columns)
    values = ", ".join(columns.values())
    async with refused(CHECK, f'"{constraint}"'):
        await run(conn, f"INSERT INTO draftsman.{table} ({names}) VALUES ({values})")
