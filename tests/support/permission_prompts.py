"""Permission prompts in the shapes of the recorded agents, with the decisions of a person.

The recordings have the messages of five agents. Each prompt is such a message with another command,
chosen by a fixed seed: commands that a person always allows, that the person always denies, and
commands that are allowed but are too rich for a rule.
"""

from __future__ import annotations

import copy
import json
import random
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from draftsman.agents.permissions import Call
from draftsman_agents import claude as claude_calls
from draftsman_agents import codex as codex_requests
from tests.support.permissions import ROOTS

RECORDINGS: Final = Path(__file__).parents[1] / "recordings"
AGENTS: Final = {"claude": 40, "codex": 30, "qwen": 15, "goose": 10, "gemini": 5}
"""Parts of each agent, per cent. Goose and Gemini CLI send no command that a rule may allow."""
REPOS: Final = ("acme/shop", "acme/wiki", "acme/pay")
NAMES: Final = ("cart", "order", "price", "stock", "user", "mail", "tax", "api", "sync", "cache")
ALLOWED: Final = {
    "pytest tests/unit/test_{}.py": 14,
    "pytest tests/unit/test_{}.py::test_it -q": 4,
    "pytest tests/web/test_{}.py": 6,
    "python -m pytest tests/unit/test_{}.py": 6,
    "ruff check --fix src/shop/{}.py": 7,
    "ruff format src/shop/{}.py": 5,
    "mypy src/shop/{}.py": 4,
    "git status": 4,
    "git diff src/shop/{}.py": 4,
    "cargo test": 3,
    "go test ./...": 3,
    "npm test": 3,
    "make check": 3,
    "pytest tests/unit/test_{}.py 2>&1 | tail -20": 6,
    "cd src && ls": 4,
    "grep -rn '{}' src": 4,
    "python scripts/{}.py": 3,
    "pip install {}": 3,
    "sed -i s/{}/x/ src/shop/a.py": 2,
}
DENIED: Final = {
    "pytest tests/live/test_{}.py": 3,
    "git push origin {}": 3,
    "rm -rf build/{}": 2,
    "curl https://{}.example.org": 2,
    "pytest tests/unit/test_{}.py; git push": 1,
    "npm publish": 1,
}


@dataclass(frozen=True, slots=True)
class Prompt:
    """A permission request in a repository, and the recorded decision of a person."""

    repo: str
    command: str
    call: Call
    allowed: bool


def prompts(count: int, seed: int = 22) -> list[Prompt]:
    """Return prompts with decisions, the same for the same seed."""
    chosen = random.Random(seed)
    templates = [*ALLOWED.items(), *DENIED.items()]
    weights = [weight for _, weight in templates]
    made = []
    for _ in range(count):
        ((template, _),) = chosen.choices(templates, weights)
        command = template.format(chosen.choice(NAMES))
        (agent,) = chosen.choices(list(AGENTS), list(AGENTS.values()))
        repo = chosen.choice(REPOS)
        made.append(Prompt(repo, command, _call(agent, command), template in ALLOWED))
    return made


def _call(agent: str, command: str) -> Call:
    """Return the call of an agent's recorded request, with this command."""
    recorded = copy.deepcopy(_requests()[agent])
    if agent == "claude":
        recorded["tool_input"]["command"] = command
        return claude_calls.call_of(recorded, ROOTS)
    if agent == "codex":
        recorded["command"] = f"/bin/bash -lc {shlex.quote(command)}"
        return codex_requests.command_call(recorded, ROOTS, "/workspace/repo")
    if "rawInput" in recorded:
        recorded["rawInput"]["command"] = command
    return Call.of(recorded | {"title": command}, ROOTS)


@cache
def _requests() -> Mapping[str, dict[str, Any]]:
    """Return the first recorded permission request of each agent for a command."""
    found: dict[str, dict[str, Any]] = {}
    for path in sorted(RECORDINGS.glob("*.jsonl")):
        if (agent := path.name.partition("-")[0]) not in AGENTS:
            continue
        for line in path.read_text(encoding="utf-8").splitlines():
            message = json.loads(line).get("message")
            request = _request(message) if isinstance(message, dict) else None
            if request is not None:
                found.setdefault(agent, request)
    assert found.keys() == AGENTS.keys()
    return found


def _request(message: Mapping[str, Any]) -> dict[str, Any] | None:
    if message.get("hook_event_name") == "PreToolUse" and message.get("tool_name") == "Bash":
        return dict(message)
    if message.get("method") == "item/commandExecution/requestApproval":
        return dict(message["params"])
    if message.get("method") == "session/request_permission":
        return dict(message["params"]["toolCall"])
    return None
