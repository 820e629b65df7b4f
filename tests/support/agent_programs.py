"""The tests with the real programs of agents: npm installs them once, in the recorded versions.

    python -m tests.support.agent_programs [ARGUMENTS OF PYTEST]

The folder is AGENTS_CACHE, else ~/.cache/draftsman-agents; keep it between runs of a CI. A variable
such as CODEX names a program that is installed already.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.support.codex_recording import FOLDER

PACKAGES: Final = {
    "claude": "@anthropic-ai/claude-code",
    "codex": "@openai/codex",
    "opencode": "opencode-ai",
    "qwen": "@qwen-code/qwen-code",
    "gemini": "@google/gemini-cli",
    "goose": "@aaif/goose-binary-linux-x64",
}
"""Packages of npm, by the name of the agent."""
PROGRAMS: Final = {"goose": "goose-binary-linux-x64"}
"""Programs that have another name than their agent."""
NODE: Final = {"qwen": 22}
"""Major version of Node.js that a recorded version needs."""
TESTS: Final = (
    *("soak_acp_agents", "soak_agent_budgets", "soak_busy_models", "soak_claude"),
    *("soak_claude_config", "soak_claude_forms", "soak_claude_team", "soak_codex", "soak_opencode"),
    *("soak_pull_request_story", "soak_requested_changes"),
)


def install(name: str, version: str, cache: Path) -> str | None:
    """Return the path of an agent's program, installed if it is missing; None if npm fails."""
    folder = cache / f"{name}-{version}"
    program = folder / "node_modules" / ".bin" / PROGRAMS.get(name, name)
    if not program.exists():
        folder.mkdir(parents=True, exist_ok=True)
        command = ["npm", "install", "--ignore-scripts", "--prefix", str(folder)]
        subprocess.run([*command, f"{PACKAGES[name]}@{version}"], check=False)
        package = folder / "node_modules" / PACKAGES[name]
        if (description := package / "package.json").exists():
            scripts = json.loads(description.read_text(encoding="utf-8")).get("scripts", {})
            if "postinstall" in scripts:  # some copy the program of the platform
                subprocess.run(["sh", "-c", scripts["postinstall"]], cwd=package, check=False)
    return str(program) if program.exists() else None


def node_version() -> int:
    """Return the major version of Node.js; 0 without it."""
    if shutil.which("node") is None:
        return 0
    output = subprocess.run(["node", "--version"], capture_output=True, text=True, check=True)
    return int(output.stdout.strip().removeprefix("v").partition(".")[0])


def main(arguments: Sequence[str]) -> int:
    """Install the programs and run the tests; return the exit code of pytest."""
    cache = Path(os.environ.get("AGENTS_CACHE", "~/.cache/draftsman-agents")).expanduser()
    environment = dict(os.environ)
    node = node_version()
    for name, version in sorted(path.stem.split("-", 1) for path in FOLDER.glob("*.jsonl")):
        if node >= NODE.get(name, 1) and name.upper() not in environment:
            if (program := install(name, version, cache)) is not None:
                environment[name.upper()] = program
        elif name.upper() not in environment:
            sys.stderr.write(f"{name} {version} needs Node.js {NODE.get(name, 'and npm')}\n")
    files = [f"tests/soak/{name}.py" for name in TESTS]
    command = [sys.executable, "-m", "pytest", *files, *arguments]
    return subprocess.run(command, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
