"""Recorded messages between the adapter and Codex, and the comparison of their shapes.

    python -m tests.support.codex_recording PATH/TO/codex

writes `tests/recordings/codex-VERSION.jsonl`: lines with a direction and a message.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from tests.support.adapter_driver import AdapterRuns
from tests.support.fake_model import fake_model

FOLDER: Final = Path(__file__).parents[1] / "recordings"
TEE: Final = """
import ctypes, subprocess, sys, threading
log = open(sys.argv[1], "ab", buffering=0)
pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
end = lambda: ctypes.CDLL(None).prctl(1, 9)  # PR_SET_PDEATHSIG: with this process, which is killed
program = subprocess.Popen(sys.argv[2:], preexec_fn=end, **pipes)
def copy():
    for line in sys.stdin.buffer:
        log.write(b"> " + line)
        program.stdin.write(line)
        program.stdin.flush()
    program.stdin.close()
threading.Thread(target=copy, daemon=True).start()
for line in program.stdout:
    log.write(b"< " + line)
    sys.stdout.buffer.write(line)
    sys.stdout.flush()
sys.exit(program.wait())
"""
"""A program between the adapter and Codex, which writes their lines to a file."""
PATCH: Final = """apply_patch <<'EOF'
*** Begin Patch
*** Add File: b.txt
+b
*** Update File: a.txt
@@
-one
+two
*** End Patch
EOF
"""
QUESTION: Final[dict[str, Any]] = {
    "id": "database",
    "header": "Database",
    "question": "Which database?",
    "options": [
        {"label": "PostgreSQL", "description": "durable"},
        {"label": "SQLite", "description": "small"},
    ],
}
RUN: Final = {"tool": "exec_command", "args": {"cmd": "echo yes >> ran.txt"}}
SCRIPT: Final[list[dict[str, Any]]] = [
    RUN,  # interrupted
    RUN,
    {"tool": "exec_command", "args": {"cmd": PATCH}},
    {"tool": "request_user_input", "args": {"questions": [QUESTION]}},
    {"tool": "exec_command", "args": {"cmd": "echo no >> ran.txt"}},
    {"text": "all done"},
]
ANSWERS: Final = ("allow once", "SQLite", "not today")
"""Answers to the questions of the second run, after that of the first."""
FAKE_SCRIPT: Final[list[dict[str, Any]]] = [
    {"run": "echo yes >> ran.txt"},
    {"edit": ["b.txt", "b\n"]},
    {"input": [QUESTION]},
    {"run": "echo no >> ran.txt"},
    {"say": "all done"},
]
"""The same for `codex_agent.py`."""
UNUSED: Final = (
    *("account/", "remoteControl/", "mcpServer/startupStatus", "skills/", "configWarning"),
    *("thread/started", "thread/status/", "thread/readState/", "turn/started", "turn/diff/"),
    *("serverRequest/", "item/agentMessage/delta", "warning", "item/commandExecution/outputDelta"),
)
"""Beginnings of methods that the adapter does not use."""
MAX_STRING: Final = 200
MAPS: Final = frozenset({"answers", "projects", "features"})
"""Members whose keys are data."""
IDENTIFIER: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")

Line = tuple[str, dict[str, Any]]
"""The direction, `<` for a message of Codex, and the message."""


def native_program(program: str) -> str:
    """Return the program that the script of the npm package starts with Node.js."""
    path = Path(program).resolve()
    natives = sorted(path.parents[1].parent.glob("codex-*/vendor/*/bin/codex"))
    return str(natives[0] if path.suffix == ".js" and natives else path)


def recording_of(version: str) -> list[Line]:
    """Return the recorded messages of a version."""
    lines = (FOLDER / f"codex-{version}.jsonl").read_text(encoding="utf-8").splitlines()
    return [(line["direction"], line["message"]) for line in map(json.loads, lines)]


def recorded_version() -> str:
    """Return the version of the only recording."""
    [path] = FOLDER.glob("codex-*.jsonl")
    return path.stem.removeprefix("codex-")


def version_of(program: str) -> str:
    """Return the version of a program."""
    output = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    return output.stdout.split()[-1]


def record(command: Sequence[str], folder: Path, last: Sequence[str] | None = None) -> list[Line]:
    """Run the adapter with a program until its model fails; return the messages between both.

    `last` is the command of the last run, whose model fails.
    """
    workspace = folder / "repo"
    home = folder / "home"
    workspace.mkdir()
    home.mkdir()
    (workspace / "a.txt").write_text("one\n")
    subprocess.run(["git", "init", "-q", str(workspace)], check=True)
    log = folder / "lines"
    runs = AdapterRuns("draftsman_agents.codex", workspace, home)
    tee = [sys.executable, "-I", "-S", "-c", TEE, str(log)]
    with fake_model(SCRIPT) as model:
        environment = {"OPENAI_API_KEY": "key", "OPENAI_BASE_URL": model.url}
        runs.run([*tee, *command], environment=environment)
        runs.answer("allow once")
        messages = runs.run([*tee, *command], ANSWERS, environment=environment)
        assert messages[-1]["type"] == "result", messages[-1]
        model.script = [{"status": 403}]
        messages = runs.run([*tee, *(last or command)], environment=environment)
        assert messages[-1]["type"] == "error", messages[-1]
    assert (workspace / "ran.txt").read_text() == "yes\n"
    assert (workspace / "b.txt").exists()
    text = log.read_text()
    for path, name in ((workspace, "/workspace/repo"), (home, "/home/agent")):
        text = text.replace(str(path.resolve()), name).replace(str(path), name)
    return [(line[0], json.loads(line[2:])) for line in text.splitlines() if line[2:3] == "{"]


def trim(lines: Iterable[Line]) -> Iterator[Line]:
    """Yield the messages that the adapter uses, with short texts."""
    for direction, message in lines:
        if not str(message.get("method", "")).startswith(UNUSED):
            yield direction, _short(message)


def shapes(lines: Iterable[Line]) -> dict[str, set[str]]:
    """Return the members of each kind of message, as `path: type`, by direction and method."""
    found: dict[str, set[str]] = {}
    asked: dict[tuple[str, Any], str] = {}
    for direction, message in lines:
        method = message.get("method")
        if method is not None and "id" in message:
            asked["<" if direction == ">" else ">", message["id"]] = method
        name = method or f"reply to {asked.get((direction, message.get('id')))}"
        params = message.get("params", message.get("result", message.get("error")))
        item = params.get("item") if isinstance(params, dict) else None
        suffix = f" {item['type']}" if isinstance(item, dict) else ""
        found.setdefault(f"{direction} {name}{suffix}", set()).update(_members(params))
    return found


def differences(own: Iterable[Line], recorded: Iterable[Line]) -> list[str]:
    """Return the messages and members of `own` that the recording does not have."""
    known = shapes(recorded)
    problems = []
    for name, members in shapes(own).items():
        if name not in known:
            problems.append(f"{name} is not recorded")
        else:
            problems += [f"{name}: {member}" for member in sorted(members - known[name])]
    return problems


def _members(value: Any, path: str = "") -> Iterator[str]:
    if isinstance(value, dict):
        for key, item in value.items():
            name = "*" if path.rpartition(".")[2] in MAPS else key
            yield from _members(item, f"{path}.{name}" if path else name)
    elif isinstance(value, list):
        for item in value:
            yield from _members(item, f"{path}[]")
    else:
        yield f"{path}: {'null' if value is None else type(value).__name__}"


def _short(value: Any) -> Any:
    if isinstance(value, dict):
        config = value if "web_search" in value and "features" in value else None
        kept = {key: value[key] for key in ("projects", "features", "agents")} if config else value
        return {key: _short(item) for key, item in kept.items()}
    if isinstance(value, list):
        return [_short(item) for item in value]
    return value[:MAX_STRING] if isinstance(value, str) else value


def main(program: str) -> None:
    """Write the recording of the program's version, instead of that of another."""
    command = [program, "app-server", "-c", 'model="fake-1"']
    with tempfile.TemporaryDirectory() as folder:
        lines = list(trim(record(command, Path(folder))))
    FOLDER.mkdir(exist_ok=True)
    for old in FOLDER.glob("codex-*.jsonl"):
        old.unlink()
    with (FOLDER / f"codex-{version_of(program)}.jsonl").open("w", encoding="utf-8") as file:
        for direction, message in lines:
            file.write(json.dumps({"direction": direction, "message": message}) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
