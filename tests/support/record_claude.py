"""Claude Code with a recording of its messages, and of the calls that its hook gets.

    python record_claude.py CLAUDE FLAGS…

Each message is a line of standard error, which is the log of a run: `RECORDED`, and JSON.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, Final

MARK: Final = "RECORDED "
LISTS: Final = 2
"""Items kept of a list."""
TEXT: Final = 60
"""Characters kept of a text."""
ROOT: Final = str(Path(__file__).parents[2])
"""Folder of this machine, which is left out of texts."""
ACCOUNT: Final = ("email", "organization", "account", "apiKeySource", "memory_paths", "plugins")
"""Parts of keys that are left out."""


def short(value: Any) -> Any:
    """Return a message without long lists and texts, and without the data of an account."""
    if isinstance(value, dict):
        kept = {key: item for key, item in value.items() if not any(no in key for no in ACCOUNT)}
        return {key: short(item) for key, item in kept.items()}
    if isinstance(value, list):
        return [short(item) for item in value[:LISTS]]
    return value.replace(ROOT, "")[:TEXT] if isinstance(value, str) else value


def record(source: str, line: bytes, file: Any = sys.stderr) -> None:
    """Write a message."""
    try:
        message = {"from": source, "message": short(json.loads(line))}
    except ValueError:
        return
    file.write(f"{MARK}{json.dumps(message)}\n")
    file.flush()


def run(command: list[str]) -> int:
    """Run the program, and record its messages."""
    hooks = Path.home() / "recorded"
    at = command.index("--settings") + 1
    settings = json.loads(command[at])
    hook = settings["hooks"]["PreToolUse"][0]["hooks"][0]
    own = [sys.executable, "-I", "-S", __file__, "hook", str(hooks), hook["command"]]
    hook["command"] = shlex.join(own)
    command[at] = json.dumps(settings)
    program = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert program.stdin is not None
    assert program.stdout is not None
    stdin = program.stdin

    def pass_input() -> None:
        for line in sys.stdin.buffer:
            record("adapter", line)
            stdin.write(line)
            stdin.flush()
        stdin.close()

    threading.Thread(target=pass_input, daemon=True).start()
    for line in program.stdout:
        record("program", line)
        sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()
    code = program.wait()
    if hooks.exists():
        sys.stderr.write(hooks.read_text())
        hooks.unlink()
    return code


def call_hook(file: Path, command: str) -> int:
    """Run the hook, and record the call and its output."""
    call = sys.stdin.buffer.read()
    done = subprocess.run(["sh", "-c", command], input=call, capture_output=True, check=False)
    with file.open("a") as lines:
        record("hook_input", call, lines)
        record("hook_output", done.stdout, lines)
    sys.stdout.buffer.write(done.stdout)
    sys.stderr.buffer.write(done.stderr)
    return done.returncode


if __name__ == "__main__":
    if sys.argv[1] == "hook":
        sys.exit(call_hook(Path(sys.argv[2]), sys.argv[3]))
    sys.exit(run(sys.argv[1:]))
