"""Actions of approvals in words."""

from __future__ import annotations

from typing import Any

from draftsman.deliveries.action_text import action_text
from tests.support.cases import cases


@cases(
    ("action", "text"),
    [
        ({"to": "origin", "push": "draftsman/D-13"}, "push draftsman/D-13 to origin"),
        ({"do": "deploy", "to": "live", "service": "pay"}, "deploy service pay to live"),
        ({"push": "main", "force": True, "tags": False}, "push main, force, tags no"),
        ({"delete": ["a", "b"], "dry_run": None}, "delete (a, b), dry run none"),
        ({"http": {"method": "POST", "to": "x"}, "n": 2.5}, "http (method POST to x), n 2.5"),
        ({"push": "a to b, force"}, 'push "a to b, force"'),
        ({"push": "x\n- y", "to b": ""}, 'push "x\\n- y", "to b" ""'),
        ({"push": 'a"b (c)', "": 1}, 'push "a\\"b (c)", "" 1'),
        ({"do": "scale up"}, '"scale up"'),
        (
            {"on": "b8e8b8e8b8e8", "policy": "eb42", "publish": "x/D-1"},
            "publish x/D-1 on commit b8e8b8e8b8e8 under policy eb42",
        ),
        ({"deploy": "pay", "on": "monday"}, "deploy pay on monday"),
        ({"policy": "eb42"}, "policy eb42"),
        ({"action": {"push": "x"}}, "action (push x)"),
    ],
)
def test_an_action_is_displayed_in_words_and_no_value_looks_like_a_key(
    action: dict[str, Any], text: str
) -> None:
    assert action_text(action) == text
