"""The agent `tidy`: runs a profile's validators and fixers, and asks which fixes to apply.

    {python} -m draftsman.agents.tidy

It validates, tries the fixers on a copy, asks, applies, validates again and reports. Each stage
stores its outcome in a checkpoint, so that a later run continues after the last finished stage.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple

from draftsman.agents.agent_client import AgentClient, RequestRefused, RunParked

# Commands of a repository profile, run with a deadline and bounded output.


KEPT_BYTES: Final = 2000
"""Bytes kept of the start of an output, and of its end."""
EXIT_POLL: Final = 0.5
"""Seconds between checks for an exit, since a child of the command may keep the output open."""
MAX_TITLE: Final = 500
"""Characters of a command that is shown."""
NO_MODULE: Final = re.compile(r"No module named '?([\w.]+)'?")
TALLY: Final = re.compile(
    r"\b\d{1,9} \w{0,100}?(error|failed|failure|file|finding|issue|passed|problem)"
)

_numbers = itertools.count(1)


class CommandNotFound(Exception):
    """The program of a command does not exist."""


class CompletedCommand(NamedTuple):
    """Result of a command; `exit_code` is None after a timeout."""

    name: str
    command: str
    exit_code: int | None
    seconds: float
    output: str

    @property
    def summary(self) -> str:
        """The line of the output with the totals, else the last line."""
        if self.exit_code is None:
            return f"timed out after {self.seconds:.0f} s"
        lines = [line.strip() for line in self.output.splitlines() if line.strip()]
        tallies = [line for line in lines if TALLY.search(line)]
        return (tallies or lines or [f"exit {self.exit_code}"])[-1][:200]

    def as_json(self) -> dict[str, Any]:
        """Return the fields for events and reports."""
        return {
            "name": self.name,
            "command": self.command,
            "exit_code": self.exit_code,
            "duration_seconds": round(self.seconds, 3),
            "summary": self.summary,
            "output": self.output,
        }


def run(client: AgentClient, settings: dict[str, Any], folder: Path) -> CompletedCommand:
    """Run a command of the profile in a folder.

    Raises CommandNotFound, and RunParked after killing the command.
    """
    name = settings["name"]
    command = settings["command"]
    started = time.monotonic()
    call = {"key": f"command-{next(_numbers)}", "text": shlex.join(command)[:MAX_TITLE]}
    client.send("activity", kind="tool", tool="execute", state="running", **call)
    child = _start(name, command, folder)
    try:
        output, in_time = _read(client, child, started + settings["timeout"])
    finally:
        _kill(child)
    code = child.wait() if in_time else None
    ended = "completed" if code == 0 else "failed"
    client.send("activity", kind="tool", tool="execute", state=ended, **call)
    text = output.text()
    if code == 127:
        lines = text.strip().splitlines() or [f"{command[0]} exited with 127"]
        raise CommandNotFound(_advice(name, lines[-1]))
    if code == 1 and _lacks_module(command, text):
        raise CommandNotFound(_advice(name, f"{command[0]} has no module {_module(command)}"))
    return CompletedCommand(name, shlex.join(command), code, time.monotonic() - started, text)


class HeadTailBuffer:
    """The start and the end of a command's output."""

    def __init__(self) -> None:
        self._head = b""
        self._tail = b""
        self._size = 0

    def add(self, chunk: bytes) -> None:
        """Append a chunk of output."""
        self._size += len(chunk)
        room = KEPT_BYTES - len(self._head)
        self._head += chunk[:room]
        self._tail = (self._tail + chunk[room:])[-KEPT_BYTES:]

    def text(self) -> str:
        """Return the text, with the number of omitted bytes."""
        omitted = self._size - len(self._head) - len(self._tail)
        gap = f"\n… {omitted:,} bytes omitted …\n".encode() if omitted else b""
        return (self._head + gap + self._tail).decode(errors="replace").replace("\0", "")


def _start(name: str, command: list[str], folder: Path) -> subprocess.Popen[bytes]:
    quiet = {"NO_COLOR": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        return subprocess.Popen(
            command,
            cwd=folder,
            env=os.environ | quiet,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except OSError:
        raise CommandNotFound(_advice(name, f"program {command[0]} not found")) from None


def _read(
    client: AgentClient, child: subprocess.Popen[bytes], deadline: float
) -> tuple[HeadTailBuffer, bool]:
    """Return the output, and whether the command ended before the deadline."""
    output = HeadTailBuffer()
    source = child.stdout.fileno() if child.stdout else 0
    while (seconds := deadline - time.monotonic()) > 0:
        if client.wait(source, min(seconds, EXIT_POLL)):
            chunk = os.read(source, 1 << 16)
            output.add(chunk)
            if not chunk:
                return output, _ends(child, deadline)
        elif child.poll() is not None:
            return output, True
    return output, False


def _ends(child: subprocess.Popen[bytes], deadline: float) -> bool:
    try:
        child.wait(max(deadline - time.monotonic(), 0))
    except subprocess.TimeoutExpired:
        return False
    return True


def _kill(child: subprocess.Popen[bytes]) -> None:
    """Kill the command and its remaining children."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    if child.stdout:
        child.stdout.close()


def _lacks_module(command: list[str], output: str) -> bool:
    match = NO_MODULE.search(output)
    return match is not None and match[1].partition(".")[0] == _module(command)


def _advice(name: str, problem: str) -> str:
    return (
        f"command {name!r}: {problem[:300]}; install it where the sandbox can read it"
        " ([sandbox] read_only), or change the profile"
    )


def _module(command: list[str]) -> str | None:
    """Return the top-level package of the `-m` argument."""
    after = command[command.index("-m") + 1 :] if "-m" in command else []
    return after[0].partition(".")[0] if after else None


SAFE: Final = "safe fixes"
ALL: Final = "all fixes"
NOTHING: Final = "nothing"
FIXED: Final = re.compile(r"\((\d+) fixed")
NO_FILES: Final = re.compile(r"No \w+ files found")
CONTEXT_LINES: Final = 20
NONE_RAN: Final = (
    "no validators ran: add validation_commands to the repository's profile; see docs/repos.md of"
    " draftsman"
)
NO_FILES_RAN: Final = "no validators ran: the repository has no files that the profile applies to"
STAGES: Final = {
    "before": "run the validators",
    "survey": "try the fixers on a copy",
    "applied": "apply the chosen fixes",
    "after": "run the validators again",
}
"""Stages, as the plan shows them."""

Outcome = dict[str, Any]


class FixerTimeout(Exception):
    """A fixer exceeded its timeout."""


class Tidy:
    """One run of the agent."""

    def __init__(self, client: AgentClient) -> None:
        self.client = client
        start = client.start
        self.tree = Path(start["workspace"])
        self.part = start["profile"].get("path", "")
        self.base = start["base_sha"]
        self.repo = Path(start["repo"]).name.removesuffix(".git")
        self.validators: list[dict[str, Any]] = start["profile"]["validation_commands"]
        self.fixers: list[dict[str, Any]] = start["profile"]["fix_commands"]
        self.may_write = start["mode"] == "fix"
        self.done: dict[str, Any] = start["checkpoint"] or {}

    def run(self) -> None:
        """Run the remaining stages, then send the result."""
        before = self.stage("before", self.validate)
        survey = self.stage("survey", self.survey)
        if not any(changes["files"] for changes in survey.values()):
            self.finish(_nothing_to_fix(before), None, before)
        elif not self.may_write:
            self.finish(f"{SAFE}: {describe(survey[SAFE])}", None, before)
        else:
            level = self.ask(before, survey)
            applied = self.stage("applied", lambda: self.apply(level))
            after = self.stage("after", self.validate) if level != NOTHING else before
            self.finish(_sum_up(applied, after), applied, after)

    def stage(self, name: str, run: Callable[[], Any]) -> Any:
        """Return the outcome of a stage, from the checkpoint if an earlier run finished it."""
        if name not in self.done:
            self.show_plan(name)
            self.done[name] = run()
            self.client.call("checkpoint", data=self.done)
        return self.done[name]

    def show_plan(self, current: str) -> None:
        """Show the stages with their states."""
        steps = []
        for name, text in STAGES.items():
            state = "completed" if name in self.done else "pending"
            if name == current:
                state = "running"
            steps.append({"text": text, "state": state})
        self.client.send("activity", kind="plan", entries=steps)

    def validate(self) -> list[Outcome]:
        """Run the validators on the workspace, and remove the files that they leave in it."""
        before = self._new_files(self.tree)
        outcomes = [self._validate(settings) for settings in self.validators]
        for name in self._new_files(self.tree) - before:
            if not name.endswith("/"):  # a repository
                (self.tree / name).unlink(missing_ok=True)
        return outcomes

    def _validate(self, settings: dict[str, Any]) -> Outcome:
        try:
            ran = run(self.client, settings, self.tree / self.part)
        except CommandNotFound as error:
            if settings["required"]:
                raise
            ran = CompletedCommand(settings["name"], settings["command"][0], 127, 0.0, str(error))
        outcome = ran.as_json() | {"passed": ran.exit_code == 0, "required": settings["required"]}
        self.client.send("event", kind="validation_ran", payload=outcome)
        return outcome

    def survey(self) -> dict[str, Outcome]:
        """Return the changes of each level, measured on copies."""
        changes = {}
        for level in (SAFE, ALL):
            with tempfile.TemporaryDirectory(dir=os.environ.get("HOME")) as folder:
                copy = Path(folder, "tree")
                shutil.copytree(self.tree, copy, symlinks=True, ignore=_git_folder(self.tree))
                (copy / ".git").write_text(f"gitdir: {self.tree / '.git'}\n")
                ran = [run(self.client, fixer, copy / self.part) for fixer in self.fixers_of(level)]
                changes[level] = self.changes(copy) | {"findings": _findings(ran)}
            self.client.send("log", text=f"{level}: {describe(changes[level])}")
        return changes

    def fixers_of(self, level: str) -> list[dict[str, Any]]:
        """Return the fixers of a level, unsafe fixers first, so that a formatter runs last."""
        levels = {SAFE: ("safe",), ALL: ("all", "safe"), NOTHING: ()}[level]
        return [fixer for name in levels for fixer in self.fixers if fixer["level"] == name]

    def ask(self, before: list[Outcome], survey: dict[str, Outcome]) -> str:
        """Return the level that a person chose; NOTHING without an answer in time."""
        levels = (SAFE, ALL)  # a stored checkpoint does not keep the order of its keys
        choices = [{"value": level, "description": describe(survey[level])} for level in levels]
        answer = self.client.call(
            "ask",
            key="apply",
            text=f"Which fixes should be applied to {self.repo}?",
            choices=[*choices, {"value": NOTHING, "description": "make no changes"}],
            context=_context(before),
            on_expire="continue",
        )
        return answer["value"] if answer["value"] in survey else NOTHING

    def apply(self, level: str) -> Outcome:
        """Run the level's fixers in the workspace."""
        for fixer in self.fixers_of(level):
            ran = run(self.client, fixer, self.tree / self.part)
            self.client.send("event", kind="command_executed", payload=ran.as_json())
            if ran.exit_code is None:
                raise FixerTimeout(
                    f"fixer {ran.name!r} exceeded its timeout of {fixer['timeout']:g} s;"
                    " increase the timeout in the profile"
                )
        return self.changes(self.tree) | {"level": level}

    def changes(self, tree: Path) -> Outcome:
        """Return the number of changed files and lines against the base commit."""
        rows = self._git(tree, "diff", "--numstat", "--no-renames", "--no-ext-diff", self.base)
        new = self._new_files(tree)
        counts = [row.split("\t")[:2] for row in rows]
        added = sum(int(plus) for plus, _ in counts if plus != "-")
        removed = sum(int(minus) for _, minus in counts if minus != "-")
        return {"files": len(rows) + len(new), "insertions": added, "deletions": removed}

    def _new_files(self, tree: Path) -> set[str]:
        """Return the files that are neither in the index nor ignored."""
        return set(self._git(tree, "ls-files", "--others", "--exclude-standard"))

    def _git(self, tree: Path, *arguments: str) -> list[str]:
        where = (f"--git-dir={self.tree / '.git'}", f"--work-tree={tree}")
        output = subprocess.run(
            ["git", *where, arguments[0], "-z", *arguments[1:]],
            cwd=tree,
            env=os.environ | {"GIT_OPTIONAL_LOCKS": "0"},
            stdout=subprocess.PIPE,
            check=True,
        ).stdout
        return [row for row in os.fsdecode(output).split("\0") if row]

    def finish(self, summary: str, applied: Outcome | None, after: list[Outcome]) -> None:
        """Store a report and send the result."""
        self.show_plan("")
        before = self.done["before"]
        report = Path(os.environ.get("HOME", tempfile.gettempdir()), "report.md")
        report.write_text(_report(self.repo, summary, before, after), encoding="utf-8")
        self.client.call("artifact", path=str(report), name="report.md")
        data = {
            "before": [_short(outcome) for outcome in before],
            "after": [_short(outcome) for outcome in after],
            "level": applied["level"] if applied else None,
            "files_changed": applied["files"] if applied else 0,
        }
        self.client.send("result", summary=summary, data=data)


def describe(changes: Outcome) -> str:
    """Return the changes of a level as text: `2 findings in 1 file, +3 -4 lines`."""
    if not changes["files"]:
        return "no changes"
    files = _count(changes["files"], "file")
    subject = f"{_count(changes['findings'], 'finding')}" if changes["findings"] else "changes"
    return f"{subject} in {files}, +{changes['insertions']} -{changes['deletions']} lines"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _findings(ran: list[CompletedCommand]) -> int:
    return sum(int(number) for command in ran for number in FIXED.findall(command.output))


def _git_folder(tree: Path) -> Callable[[str, list[str]], list[str]]:
    return lambda folder, _: [".git"] if Path(folder) == tree else []


def _nothing_to_fix(before: list[Outcome]) -> str:
    if any(NO_FILES.search(outcome["output"]) for outcome in before):
        return "nothing to fix: the repository has no files that the profile applies to"
    return f"nothing to fix; {_state(before)}"


def _sum_up(applied: Outcome, after: list[Outcome]) -> str:
    if applied["level"] == NOTHING:
        return f"nothing applied, as chosen; {_state(after)}"
    return f"{applied['level']} applied to {_count(applied['files'], 'file')}; {_state(after)}"


def _state(outcomes: list[Outcome]) -> str:
    failing = [
        f"{outcome['name']}: {outcome['summary']}" for outcome in outcomes if not outcome["passed"]
    ]
    if failing:
        return "; ".join(failing)
    if all(NO_FILES.search(outcome["output"]) for outcome in outcomes):  # or no outcomes at all
        return NO_FILES_RAN if outcomes else NONE_RAN
    return "all validators pass"


def _context(before: list[Outcome]) -> str:
    failing = [outcome for outcome in before if not outcome["passed"]]
    lines = [f"{outcome['name']}: {outcome['summary']}" for outcome in failing]
    for outcome in failing:
        lines += ["", *outcome["output"].splitlines()[:CONTEXT_LINES]]
    return "\n".join(lines)


def _short(outcome: Outcome) -> Outcome:
    return {key: value for key, value in outcome.items() if key != "output"}


def _report(repo: str, summary: str, before: list[Outcome], after: list[Outcome]) -> str:
    rows = [
        f"| {old['name']} | {_mark(old)} | {_mark(new)} | {new['summary'].replace('|', '/')} |"
        for old, new in zip(before, after, strict=True)
    ]
    table = ["| validator | before | after | summary |", "|---|---|---|---|", *rows]
    return "\n".join([f"# tidy: {repo}", "", summary, "", *table, ""])


def _mark(outcome: Outcome) -> str:
    return "passes" if outcome["passed"] else "fails"


def main() -> int:
    """Run until completed, parked or failed; return the exit code."""
    try:
        client = AgentClient()
        Tidy(client).run()
    except RunParked:
        return 0
    except CommandNotFound as error:
        return _fail(client, "PERMANENT", "command_not_found", error)
    except FixerTimeout as error:
        return _fail(client, "TRANSIENT_APP", "command_timeout", error)
    except RequestRefused as error:
        return _fail(client, error.error_class, "refused", error)
    return 0


def _fail(client: AgentClient, error_class: str, code: str, error: Exception) -> int:
    client.send("error", **{"class": error_class, "code": code, "message": str(error)})
    return 1


if __name__ == "__main__":
    sys.exit(main())
