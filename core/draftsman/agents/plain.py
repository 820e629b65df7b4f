"""The adapter for programs without a protocol: a prompt, an output and an exit code.

{python} -m draftsman.agents.plain [--prompt TEMPLATE] [--scratch PATTERN]… -- program {prompt}

An exit code of 0 is no evidence of completed work: the work is complete if the program changed
files, or wrote a summary; else people decide. A question that a program of the run asks ends the
program, which a later run starts again with the answer in its prompt.
"""

from __future__ import annotations

import argparse
import codecs
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from draftsman.agents.adapter import Adapter, main
from draftsman.agents.agent_client import AgentClient, RunParked
from draftsman.agents.program import (
    EXIT_SECONDS,
    AgentFailure,
    attachment_text,
    missing_text,
    own_environment,
)

TEMPLATE: Final = "{title}\n\n{text}\n\n{history}"
PLACEHOLDER: Final = re.compile(r"\{(title|text|job|branch|history)\}")
PROMPT: Final = "{prompt}"
SUMMARY: Final = "summary.md"
"""File below HOME in which a program may write the summary of its work."""
POLL: Final = 1.0
"""Seconds between looks at a program whose output another program keeps open."""
GRACE: Final = 3.0
"""Seconds for a program to end after SIGTERM."""
MAX_TAIL: Final = 2000
"""Characters of the last lines of the output, which are the summary without another."""
NOT_FOUND: Final = (126, 127)
END: Final = "end:"
"""Prefix of the keys of questions about a program that ended without evidence."""
DONE: Final = "done"
AGAIN: Final = "run again"
STOP: Final = "stop"
CHOICES: Final = (
    {"value": DONE, "description": "the work is complete as it is"},
    {"value": AGAIN, "description": "with the same prompt"},
    {"value": STOP, "description": "the job fails"},
)
OTHER_TEXT: Final = "Another text runs the program again, with this text in its prompt."


class PlainAdapter(Adapter):
    """A run of the program."""

    def __init__(self, client: AgentClient, options: argparse.Namespace) -> None:
        super().__init__(client, options)
        self.template: str = options.prompt or TEMPLATE
        self.scratch: list[str] = options.scratch
        self.process: subprocess.Popen[bytes] | None = None

        self.tail = ""

    @classmethod
    def add_options(cls, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument("--prompt")
        parser.add_argument("--scratch", action="append", default=[])

    def run(self) -> None:
        """Run the program to its end, then send the result or ask people for it."""
        try:
            while not self.is_decided():
                before = self.checkpoint()
                self.live = True
                self.turn(self.prompt())
                if self.is_complete(before):
                    break
        except RunParked:
            self.close()
            if self.live and "ended" not in self.saved:
                self.clean()
                self.checkpoint()
            raise
        finally:
            self.close()

    def is_decided(self) -> bool:
        """Return whether a person decided that the work of an earlier run is complete."""
        ended = self.saved.get("ended")
        if not isinstance(ended, dict):
            return False
        answer = self.ask(ended)
        if answer == STOP:
            text = f"{self.name} ended without changes, and a person stopped the job"
            raise AgentFailure("PERMANENT", "stopped", text)
        if answer == DONE:
            self.send_result(ended["summary"])
            return True
        if answer != AGAIN:
            self.saved["texts"] = [*self.saved.get("texts", []), answer]
        del self.saved["ended"]
        return False

    def ask(self, ended: Mapping[str, Any]) -> str:
        """Return the decision of people; raises RunParked while there is none."""
        answer = self.client.call(
            "ask",
            key=f"{END}{ended['number']}",
            text=f"{self.name} ended without changes. Is the work complete?",
            choices=CHOICES,
            freeform=True,
            context=f"{ended['summary'][-2000:]}\n\n{OTHER_TEXT}",
        )
        return str(answer.get("value") or answer.get("text") or STOP)

    # The program

    def prompt(self) -> str:
        """Return the prompt: the template with its placeholders, and the history of the job."""
        start = self.client.start
        request = start["request"]
        texts = {
            "title": request["title"] or "",
            "text": request["text"] or "",
            "job": start["job"],
            "branch": start["branch"],
            "history": "\n\n".join(self.history()),
        }
        template = self.template
        if "{history}" not in template:
            template += "\n\n{history}"
        return PLACEHOLDER.sub(lambda match: texts[match[1]], template).strip() or "Continue."

    def history(self) -> list[str]:
        """Return the answers, the earlier work and the failed checks, as paragraphs."""
        start = self.client.start
        paragraphs = [text for text in (attachment_text(start), missing_text(start)) if text]
        if start["mode"] == "investigate":
            paragraphs.append("Report your findings. Changes of files are not kept.")
        if start["run"] > 1 or start.get("iteration", 1) > 1:
            paragraphs.append("An earlier run began this work; its changes are in the workspace.")
        for key, answer in start["answers"].items():
            if not key.startswith(END) and (question := answer.get("question")):
                text = answer.get("value") or answer.get("text") or answer["outcome"]
                reason = f": {answer['reason']}" if answer.get("reason") else ""
                paragraphs.append(f"Question: {question}\nAnswer: {text}{reason}")
        paragraphs += [f"A person wrote: {text}" for text in self.saved.get("texts", [])]
        for check in start["failed"]:
            paragraphs.append(f"This check failed: {check['command']}\n{check['output']}")
        if start["failed"]:
            paragraphs.append("Change the files so that these checks pass.")
        return paragraphs

    def open_session(self) -> None:
        """Do nothing: every turn starts the program, which has no session."""

    def turn(self, prompt: str) -> None:
        """Run the program with its output as the log; raises AgentFailure for another exit code."""
        command = [part.replace(PROMPT, prompt) for part in self.command]
        input_text = "" if any(PROMPT in part for part in self.command) else prompt
        (Path.home() / SUMMARY).unlink(missing_ok=True)
        with tempfile.TemporaryFile(dir=Path.home()) as source:
            source.write(input_text.encode())
            source.seek(0)
            try:
                self.process = subprocess.Popen(
                    command,
                    stdin=source,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    cwd=self.workspace,
                    env=own_environment(),
                    start_new_session=True,
                )
            except OSError as error:
                text = f"cannot start {command[0]}: {error.strerror}"
                raise AgentFailure("PERMANENT", "command_not_found", text) from None
        self.read(self.process)
        code = self.exit_code(self.process)
        self.clean()
        if code != 0:
            last = self.tail.rpartition("\n")[2][:500]
            text = f"{self.name} exited with code {code}" + (f": {last}" if last else "")
            error_class = "PERMANENT" if code in NOT_FOUND else "TRANSIENT_APP"
            raise AgentFailure(error_class, "exit", text)

    def read(self, process: subprocess.Popen[bytes]) -> None:
        """Log the output until the end; raises RunParked as soon as the run is parked."""
        assert process.stdout is not None  # noqa: S101 - a pipe
        output = process.stdout.fileno()
        text = ""
        decode = codecs.getincrementaldecoder("utf-8")(errors="replace").decode
        while True:
            if not self.client.wait(output, POLL):
                if process.poll() is None:
                    continue
                chunk = b""  # a program in the background has the output
            else:
                chunk = os.read(output, 1 << 16)
            text += decode(chunk, final=not chunk).replace("\0", "")
            lines, newline, text = text.rpartition("\n") if chunk else (text, "", "")
            if lines.strip():
                self.client.send("log", text=lines)
            self.tail += lines + newline
            if len(self.tail) > MAX_TAIL:
                end = self.tail[-MAX_TAIL:]
                self.tail = end.partition("\n")[2] or end
            if not chunk:
                self.tail = self.tail.strip()
                self.client.wait(output, 0)  # the question of a program that has ended
                return

    def exit_code(self, process: subprocess.Popen[bytes]) -> int:
        """Return the exit code; raises AgentFailure if the program lives on without its output."""
        try:
            return process.wait(EXIT_SECONDS)
        except subprocess.TimeoutExpired:
            text = f"{self.name} closed its output, and did not exit"
            raise AgentFailure("TRANSIENT_APP", "exit", text) from None

    def close(self) -> None:
        """End the program and those that it started."""
        process = self.process
        self.process = None
        if process is None:
            return
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(process.pid, number)
                process.wait(GRACE)
            except (ProcessLookupError, subprocess.TimeoutExpired):
                continue

    def clean(self) -> None:
        """Remove the untracked files that the program leaves in the workspace for itself."""
        if self.scratch:
            subprocess.run(
                ["git", "clean", "-qfdx", "--", *self.scratch], cwd=self.workspace, check=False
            )

    # The result

    def is_complete(self, before: str) -> bool:
        """Send the result of work with evidence; return whether there is any."""
        summary = self.written_summary()
        changed = self.checkpoint() != before
        report = self.client.start["mode"] == "investigate" and bool(self.tail)
        if changed or summary or report:
            self.send_result(summary or self.tail)
            return True
        number = int(self.saved.get("ends", 0)) + 1
        self.saved |= {"ends": number, "ended": {"number": number, "summary": self.tail}}
        self.checkpoint()
        return False

    def written_summary(self) -> str:
        """Return the summary that the program wrote; an empty text without one."""
        path = Path.home() / SUMMARY
        try:
            with path.open(encoding="utf-8", errors="replace") as file:
                return file.read(20_000).strip()
        except OSError:
            return ""

    def send_result(self, summary: str) -> None:
        """Send the result."""
        text = summary or f"{self.name} ended without output"
        self.client.call("result", summary=text, data={"agent": self.name})


if __name__ == "__main__":
    sys.exit(main("draftsman.agents.plain", PlainAdapter))
