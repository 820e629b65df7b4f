"""Moves of a card when the status of its job changes."""

from __future__ import annotations

from typing import Any

import pytest

from draftsman.jobs.job import Status
from draftsman_bots.trello.records.board import BoardConfig
from draftsman_bots.trello.records.cards import CardMove, end_moves, moves
from tests.support.cases import cases

A = "a" * 24
B = "b" * 24
C = "c" * 24


def test_a_rule_has_a_target_list_and_source_lists() -> None:
    rules = moves({"running": A, "failed": {"to": B, "from": [A]}})
    assert rules == {Status.RUNNING: CardMove(A), Status.FAILED: CardMove(B, (A,))}


def test_completed_jobs_are_ready_for_review_unless_a_rule_changes_it() -> None:
    assert moves({}, A) == {Status.COMPLETED: CardMove(A)}
    assert moves({"completed": B}, A) == {Status.COMPLETED: CardMove(B)}


def test_a_card_is_moved_once_and_only_from_the_source_lists() -> None:
    assert CardMove(A).moves(B)
    assert not CardMove(A).moves(A)
    assert CardMove(A, (B,)).moves(B)
    assert not CardMove(A, (B,)).moves(C)


@cases(
    ("rules", "message"),
    [
        ({"done": A}, "'done': unknown status; use scheduled, queued"),
        ({"running": "Doing"}, "24 hexadecimal digits"),
        ({"running": {"to": A, "form": [B]}}, "24 hexadecimal digits"),
        ({"running": {"to": A, "from": B}}, "24 hexadecimal digits"),
        ({"running": {"from": [B]}}, "24 hexadecimal digits"),
        ({"running": None}, "24 hexadecimal digits"),
    ],
)
def test_an_invalid_rule_is_refused(rules: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        BoardConfig(board_id=A, name="Work", transition_rules=rules)


def test_the_end_of_a_pull_request_has_a_rule_of_its_own() -> None:
    rules = {"completed": A, "merged": {"to": B, "from": [A]}}
    assert end_moves(rules) == {"merged": CardMove(B, (A,))}
    assert moves(rules) == {Status.COMPLETED: CardMove(A)}
    with pytest.raises(ValueError, match="merged"):
        BoardConfig(board_id="b" * 24, name="Work", transition_rules={"merged": "Done"})
