"""Permission requests in plain words: the command, the diff, the host."""

from __future__ import annotations

from typing import Any

from draftsman.agents.permissions import Call
from tests.support.cases import cases

DIFF = {"type": "diff", "path": "/w/a.py", "oldText": "one\n", "newText": "two\n"}


@cases(
    ("tool", "verb", "line"),
    [
        ({"kind": "execute", "rawInput": {"command": "make"}}, "to run a command", "$ make"),
        ({"kind": "edit", "content": [DIFF]}, "to edit files", "+two"),
        (
            {"kind": "fetch", "title": "Fetch", "rawInput": {"url": "https://u:p@x.example:8/a?b"}},
            "to connect to x.example:8",
            "url: https://u:p@x.example:8/a?b",
        ),
        ({"kind": "fetch", "rawInput": {"url": "https://[broken"}}, "to use the tool fetch", ""),
        (
            {"kind": "fetch", "rawInput": {"url": "a\u202eb"}},
            "to use the tool fetch",
            "url: a\\u{202e}b",
        ),
        ({"kind": "read", "title": "a.py"}, "to use the tool read", "a.py"),
    ],
)
def test_a_call_is_described_in_plain_words(tool: dict[str, Any], verb: str, line: str) -> None:
    call = Call.of(tool, {"/w": "."})
    assert call.verb == verb
    assert line in call.body.splitlines() or not line
