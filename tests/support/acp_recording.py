"""Recorded messages between the adapter of ACP and an agent, and an agent that replays them.

    python -m tests.support.acp_recording qwen PATH/TO/qwen

writes `tests/recordings/qwen-VERSION.jsonl`: lines with the run, a direction and a message.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from draftsman.settings.agents import known_table
from draftsman_tui.cli.demo.agent import AGAIN
from tests.support.adapter_driver import AdapterRuns
from tests.support.codex_recording import FOLDER, TEE
from tests.support.fake_model import FakeModel, Turn, fake_model
from tests.support.gemini_model import gemini_model

MODULE: Final = "draftsman.agents.acp"
REPLAY: Final = Path(__file__).with_name("acp_replay.py")
RUN: Final[dict[str, Any]] = {"command": "echo yes >> ran.txt"}
OTHER: Final[dict[str, Any]] = {"command": "echo no >> ran.txt"}
MORE: Final[dict[str, Any]] = {"description": "append", "is_background": False}
SUMMARY: Final = "all done"
MAX_STRING: Final = 200
USED: Final = ("agent_message_chunk", "tool_call", "tool_call_update", "current_mode_update")
"""Kinds of updates that are recorded."""


class RememberingModel(FakeModel):
    """A model that makes its last call again when it is asked to.

    Whether a conversation keeps a call that was interrupted depends on the moment.
    """

    def __init__(self, script: Sequence[Turn]) -> None:
        super().__init__(script)
        self._place = -1

    def turn(self, results: int, conversation: list[dict[str, Any]]) -> Turn:
        """Return the next turn of the script, or the last one again."""
        if AGAIN not in json.dumps(conversation[-1]):
            self._place = min(self._place + 1, len(self.script) - 1)
        return self.script[self._place]


@dataclass(frozen=True, slots=True)
class AcpProgram:
    """An agent whose program is run: the model that it calls, and its environment."""

    name: str
    model: Any
    environment: dict[str, str]
    shell: str = "run_shell_command"
    arguments: dict[str, Any] = field(default_factory=dict)

    @property
    def script(self) -> list[dict[str, Any]]:
        """The turns of the model: two calls, and the end."""
        calls = [{"tool": self.shell, "args": self.arguments | call} for call in (RUN, OTHER)]
        return [*calls, {"text": SUMMARY}]

    def serve(self, script: Sequence[dict[str, Any]]) -> AbstractContextManager[FakeModel]:
        """Serve the model of the agent."""
        serving: AbstractContextManager[FakeModel] = self.model(script, RememberingModel)
        return serving

    def variables(self, url: str) -> dict[str, str]:
        """Return the variables of the agent for a model at this URL."""
        return {name: text.replace("{url}", url) for name, text in self.environment.items()}


QWEN: Final = AcpProgram(
    "qwen",
    fake_model,
    {"OPENAI_BASE_URL": "{url}", "OPENAI_API_KEY": "x", "OPENAI_MODEL": "fake"},
    arguments=MORE,
)
GEMINI: Final = AcpProgram(
    "gemini",
    gemini_model,
    {"GOOGLE_GEMINI_BASE_URL": "{url}", "GEMINI_API_KEY": "x"},
    arguments=MORE,
)
GOOSE: Final = AcpProgram(
    "goose",
    fake_model,
    {"OPENAI_BASE_URL": "{url}", "OPENAI_API_KEY": "x", "GOOSE_MODEL": "fake"},
    shell="shell",
)
OPENCODE_CONFIG: Final = {
    "model": "fake/fake-1",
    "small_model": "fake/fake-1",
    "provider": {
        "fake": {
            "npm": "@ai-sdk/openai-compatible",
            "options": {"baseURL": "{url}", "apiKey": "x"},
            "models": {"fake-1": {"name": "fake-1"}},
        }
    },
}
OPENCODE: Final = AcpProgram(
    "opencode",
    fake_model,
    {
        "OPENCODE_CONFIG_CONTENT": json.dumps(OPENCODE_CONFIG),
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
    },
    shell="bash",
    arguments={"description": "append"},
)
PROGRAMS: Final = {program.name: program for program in (QWEN, GEMINI, GOOSE, OPENCODE)}


def recorded(name: str) -> tuple[str, Path]:
    """Return the version of the only recording of an agent, and its file."""
    [path] = FOLDER.glob(f"{name}-*.jsonl")
    return path.stem.removeprefix(f"{name}-"), path


def version_of(program: str) -> str:
    """Return the version of a program."""
    output = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    return output.stdout.split()[-1]


def options(name: str) -> list[str]:
    """Return the options of the adapter for the known agent."""
    known = known_table(name)
    files = [f"--home={path}" for path in known["session_files"]]
    return [f"--mode={known['session_mode']}", *files]


def record(name: str, program: str, folder: Path) -> list[dict[str, Any]]:
    """Run the agent twice: it is ended at its first question; return the messages."""
    workspace = folder / "repo"
    home = folder / "home"
    workspace.mkdir()
    home.mkdir()
    subprocess.run(["git", "init", "-q", str(workspace)], check=True)
    agent = PROGRAMS[name]
    lines = []
    runs = AdapterRuns(MODULE, workspace, home)
    arguments = known_table(name)["command"][1:]
    with agent.serve(agent.script) as model:
        for run, answers in enumerate(((), ("not today",))):
            log = folder / f"lines-{run}"
            command = [sys.executable, "-I", "-S", "-c", TEE, str(log), program, *arguments]
            if run:
                runs.answer("allow once")
            environment = {**known_table(name).get("env", {}), **agent.variables(model.url)}
            messages = runs.run(command, answers, options=options(name), environment=environment)
            text = log.read_text()
            for path, inside in ((workspace, "/workspace/repo"), (home, "/home/agent")):
                text = text.replace(str(path.resolve()), inside).replace(str(path), inside)
            lines += [
                {"run": run, "direction": line[0], "message": short(json.loads(line[2:]))}
                for line in text.splitlines()
                if line[2:3] == "{" and is_used(json.loads(line[2:]))
            ]
    assert messages[-1]["type"] == "result", messages[-1]
    assert (workspace / "ran.txt").read_text() == "yes\n"
    return lines


def is_used(message: dict[str, Any]) -> bool:
    """Return whether the adapter uses a message."""
    update = message.get("params", {}).get("update", {})
    return message.get("method") != "session/update" or update.get("sessionUpdate") in USED


def short(value: Any) -> Any:
    """Return a message with short texts and lists."""
    if isinstance(value, dict):
        if value.get("id") in ("provider", "model"):  # with the list of all
            value = {**value, "options": []}
        return {key: short(item) for key, item in value.items() if key != "models"}
    if isinstance(value, list):
        return [short(item) for item in value]
    return value[:MAX_STRING] if isinstance(value, str) else value


def main(name: str, program: str) -> None:
    """Write the recording of an agent."""
    program = shutil.which(program) or program
    with tempfile.TemporaryDirectory() as folder:
        lines = record(name, program, Path(folder))
    for old in FOLDER.glob(f"{name}-*.jsonl"):
        old.unlink()
    path = FOLDER / f"{name}-{version_of(program)}.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
