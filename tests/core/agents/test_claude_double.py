"""The double of Claude Code sends messages of the shapes that the real program sends."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from tests.support import claude_agent
from tests.support.claude_recording import Recorded, first_of_each_kind, recording, shape_of

QUESTION: Final = {"question": "Which?", "options": [{"label": "a", "description": "a"}]}
CALLS: Final = {"calls": [{"read": "a.txt"}, {"run": "true"}]}
WRITE: Final = {"write": ["b.txt", "b"]}
SCRIPT: Final[list[dict[str, Any]]] = [CALLS, {"ask": [QUESTION]}, WRITE, {"fail": 402}]
FLAGS: Final = (
    *("-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose"),
    *("--permission-prompt-tool", "stdio", "--setting-sources", "user", "--strict-mcp-config"),
    *("--permission-mode", "default", "--tools", "Read,Bash"),
)


def run_double(
    home: Path,
    session: Sequence[str],
    decision: dict[str, Any],
    script: Sequence[dict[str, Any]] = SCRIPT,
) -> list[Recorded]:
    """Run the double with this decision on each call; return its messages and the calls."""
    output = json.dumps({"hookSpecificOutput": {"hookEventName": "PreToolUse", **decision}})
    calls = home / "calls"
    hook = f"cat >> {calls}; echo >> {calls}; printf '%s' {shlex.quote(output)}"
    entry = {"matcher": "*", "hooks": [{"type": "command", "command": hook}]}
    settings = json.dumps({"hooks": {"PreToolUse": [entry]}, "disableAllHooks": False})
    user = {"type": "user", "message": {"role": "user", "content": "go"}}
    done = subprocess.run(
        [
            *(sys.executable, "-I", "-S", claude_agent.__file__, json.dumps(script)),
            *(*FLAGS, "--settings", settings, *session),
        ],
        input="" if "--resume" in session else json.dumps(user) + "\n",
        env={"HOME": str(home), "PATH": "/usr/bin:/bin"},
        cwd=home,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    sent = [{"from": "program", "message": json.loads(line)} for line in done.stdout.splitlines()]
    asked = calls.read_text().splitlines()
    return sent + [{"from": "hook_input", "message": json.loads(line)} for line in asked]


def test_every_message_has_the_recorded_shape(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a")
    session = ("--session-id", "5e55")
    seen = run_double(tmp_path, session, {"permissionDecision": "defer"})
    [file] = tmp_path.glob(".claude/projects/*/5e55.jsonl")
    updated = {"answers": {}, "command": "true", "file_path": "b.txt", "content": "b"}
    allow = {"permissionDecision": "allow", "updatedInput": updated}
    seen += run_double(tmp_path, ("--resume", str(file)), allow)
    file.unlink()
    deny = {"permissionDecision": "deny", "permissionDecisionReason": "no"}
    seen += run_double(tmp_path, session, deny)
    seen += run_double(tmp_path, ("--session-id", "5e56"), deny, [{"say": "done"}])
    version, messages = recording()
    assert version == claude_agent.VERSION
    recorded = first_of_each_kind(messages)
    kinds = first_of_each_kind(seen)
    assert kinds.keys() <= recorded.keys()
    for kind, item in kinds.items():
        unknown = shape_of(item["message"]) - shape_of(recorded[kind]["message"])
        assert not unknown, f"{kind}: the recording has no {sorted(unknown)}"
    results = {f"program result success {reason}" for reason in ("tool_deferred", "end_turn")}
    assert results | {"program result success stop_sequence error"} <= kinds.keys()
