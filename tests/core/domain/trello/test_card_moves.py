"""Where a card goes as its job goes on."""

from __future__ import annotations

from typing import Any

import pytest

from draftsman.domain.job import Status
from draftsman.domain.trello.board import BoardConfig
from draftsman.domain.trello.card_moves import CardMove, moves

A, B, C = "a" * 24, "b" * 24, "c" * 24


def test_a_rule_names_a_list_and_out_of_which() -> None:
    found = moves({"running": A, "failed": {"to": B, "from": [A]}})
    assert found == {Status.RUNNING: CardMove(A), Status.FAILED: CardMove(B, (A,))}


def test_what_is_ready_for_review_is_what_completed_unless_a_rule_says_else() -> None:
    assert moves({}, A) == {Status.COMPLETED: CardMove(A)}
    assert moves({"completed": B}, A) == {Status.COMPLETED: CardMove(B)}


def test_a_card_is_moved_once_and_only_out_of_where_it_may_be() -> None:
    assert CardMove(A).moves(B)
    assert not CardMove(A).moves(A)
    assert CardMove(A, (B,)).moves(B)
    assert not CardMove(A, (B,)).moves(C)


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        ({"done": A}, "'done': unknown status; use scheduled, queued"),
        ({"running": "Doing"}, "24 hexadecimal digits"),
        ({"running": {"to": A, "form": [B]}}, "24 hexadecimal digits"),
        ({"running": {"to": A, "from": B}}, "24 hexadecimal digits"),
        ({"running": {"from": [B]}}, "24 hexadecimal digits"),
        ({"running": None}, "24 hexadecimal digits"),
    ],
)
def test_a_rule_that_cannot_be_followed_is_refused(rules: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        BoardConfig(board_id=A, name="Work", transition_rules=rules)
