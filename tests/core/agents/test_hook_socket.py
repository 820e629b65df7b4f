"""The socket of hooks: long paths, malformed messages, and adapters that have gone."""

from __future__ import annotations

import json
import select
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from draftsman.agents.agent_client import RunParked
from draftsman.agents.hook_socket import HookSocket
from draftsman_agents import claude_hook

UNDECIDED = b"draftsman cannot decide this call"
CALL = {"tool_name": "Bash", "tool_input": {"command": "echo ✓"}}


def start(path: Path) -> subprocess.Popen[bytes]:
    """Start the hook with a call."""
    command = [sys.executable, "-I", "-S", claude_hook.__file__, str(path)]
    hook = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=-1)
    assert hook.stdin is not None
    hook.stdin.write(json.dumps(CALL).encode())
    hook.stdin.close()
    hook.stdin = None
    return hook


def test_a_hook_gets_the_decision_also_below_a_long_path(tmp_path: Path) -> None:
    calls: list[dict[str, Any]] = []

    def decide(call: dict[str, Any]) -> dict[str, Any]:
        calls.append(call)
        return {"decision": "allow ✓"}

    for folder in (tmp_path, tmp_path / ("long" * 30)):
        folder.mkdir(exist_ok=True)
        server = HookSocket(folder, decide)
        with start(server.path) as hook:
            select.select([server], [], [])
            server.answer()
            output, _ = hook.communicate()
        server.close()
        assert (hook.returncode, json.loads(output)) == (0, {"decision": "allow ✓"})
        assert not server.path.parent.exists()
    assert calls == [CALL, CALL]


def test_a_connection_without_a_message_is_closed(tmp_path: Path) -> None:
    server = HookSocket(tmp_path, lambda _: {})
    for data in (b"", b"not JSON", b"[1]"):
        with socket.socket(socket.AF_UNIX) as other:
            other.connect(str(server.path))
            other.sendall(data)
            other.shutdown(socket.SHUT_WR)
            select.select([server], [], [])
            server.answer()
            assert other.recv(100) == b""
    server.answer()  # no connection waits
    server.close()


def test_a_call_without_a_decision_is_blocked(tmp_path: Path) -> None:
    def park(_: dict[str, Any]) -> dict[str, Any]:
        raise RunParked

    with start(tmp_path / "hook.sock") as hook:
        _, errors = hook.communicate()
    assert (hook.returncode, errors.partition(b":")[0]) == (claude_hook.BLOCK, UNDECIDED)
    server = HookSocket(tmp_path, park)
    with start(server.path) as hook:
        select.select([server], [], [])
        with pytest.raises(RunParked):
            server.answer()
        _, errors = hook.communicate()
    server.close()
    assert (hook.returncode, errors.partition(b":")[0]) == (claude_hook.BLOCK, UNDECIDED)
