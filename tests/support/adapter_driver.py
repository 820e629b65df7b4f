"""A worker for an adapter of an agent, without a database: it answers from a list."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

Message = dict[str, Any]


class AdapterRuns:
    """Runs of one job: each gets the checkpoint, the steps and the answers of those before."""

    def __init__(self, module: str, workspace: Path, home: Path) -> None:
        self._module = module
        self._workspace = workspace
        self._home = home
        self.checkpoint: Any = None
        self.steps: dict[str, Message] = {}
        self.answers: dict[str, Message] = {}
        self.asked: list[Message] = []
        self._runs = 0

    def run(
        self,
        command: Sequence[str],
        answers: Sequence[str] = (),
        *,
        options: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
        **start: Any,
    ) -> list[Message]:
        """Run the adapter to its end; return its messages.

        Each question gets the next answer at once; without another the run parks, and
        `answer` answers for the next run. `start` are members of the message `start`.
        """
        self._runs += 1
        left = list(answers)
        process = subprocess.Popen(
            [sys.executable, "-m", self._module, "--name=agent", *options, "--", *command],
            cwd=self._workspace,
            env={**os.environ, "HOME": str(self._home), **(environment or {})},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,  # a script may kill its process group
        )
        assert process.stdin is not None
        assert process.stdout is not None
        messages: list[Message] = []
        with process:
            process.stdin.write(json.dumps(self._start() | start) + "\n")
            process.stdin.flush()
            for line in process.stdout:
                message: Message = json.loads(line)
                messages.append(message)
                if "id" in message:
                    reply = self._reply(message, left)
                    process.stdin.write(json.dumps(reply | {"id": message["id"]}) + "\n")
                    process.stdin.flush()
        return messages

    def answer(self, text: str) -> None:
        """Answer the question that parked the last run."""
        self.answers[self.asked[-1]["key"]] = _answer(self.asked[-1], text)

    def _start(self) -> Message:
        start = {"type": "start", "v": 1, "job": "D-1", "run": self._runs, "repo": "repo"}
        start |= {"workspace": str(self._workspace), "branch": "draftsman/D-1"}
        start |= {"base_sha": "0" * 40, "mode": "fix", "failed": [], "parents": []}
        start |= {"checkpoint": self.checkpoint, "steps": self.steps, "answers": self.answers}
        profile = {"validation_commands": [], "fix_commands": [], "path": "", "skills": []}
        return start | {"request": {"title": "Do it", "text": None}, "profile": profile}

    def _reply(self, message: Message, left: list[str]) -> Message:
        kind = message["type"]
        if kind == "ask":
            self.asked.append(message)
            known = self.answers.get(message["key"])
            if known is not None and known["question"] != message["text"]:
                known = None  # the question supersedes the earlier question
            if known is None and not left:
                return {"type": "park"}
            answer = known or _answer(message, left.pop(0))
            self.answers[message["key"]] = answer
            return answer | {"type": "answer", "key": message["key"]}
        if kind == "checkpoint":
            self.checkpoint = json.loads(json.dumps(message["data"]))
            return {"type": "ack", "tree": self._tree()}
        if kind == "step":
            earlier = self.steps.get(message["key"], {"invocation_id": None})
            number = message.get("invocation_id") or earlier["invocation_id"]
            self.steps[message["key"]] = {"state": message["state"], "invocation_id": number}
        return {"type": "ack"}

    def _tree(self) -> str:
        """Return a hash of the files in the workspace."""
        files = sorted(path for path in self._workspace.rglob("*") if path.is_file())
        kept = [path for path in files if ".git" not in path.parts]
        digest = hashlib.sha1(usedforsecurity=False)
        for path in kept:
            digest.update(str(path).encode() + b"\0" + path.read_bytes() + b"\0")
        return digest.hexdigest()


def _answer(question: Message, text: str) -> Message:
    values = [choice["value"] for choice in question["choices"]]
    field = "value" if text in values else "text"
    answer = {"outcome": "answered", "value": None, "text": None, "question": question["text"]}
    return answer | {field: text, "by": ["ben"]}
