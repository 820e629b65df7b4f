"""The tools of a run: the answers that the model of an agent reads."""

from __future__ import annotations

from draftsman.agent_runs.mcp.run_tools import answer_result


def test_a_request_for_changes_is_read_with_its_comments() -> None:
    comments = [{"path": "a.py", "line": 3, "text": "why?"}, {"path": "b.txt", "text": "name it"}]
    reply = {"outcome": "changes_requested", "by": ["carol"], "comments": comments}
    data, text = answer_result(reply | {"type": "answer", "reason": "add a test"})
    assert data == reply | {"reason": "add a test"}
    assert text == "changes requested by carol: add a test\na.py:3: why?\nb.txt: name it"
    _, text = answer_result(reply)
    assert text == "changes requested by carol: a.py:3: why?\nb.txt: name it"
