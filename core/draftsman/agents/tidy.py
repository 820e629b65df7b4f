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
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from draftsman.agents.agent_client import AgentClient, RequestRefused, RunParked

# Commands of a repository profile, run with a deadline and bounded output.


NOT_FOUND: Final = 127
"""Exit code of a shell for a program that it cannot find."""
KEPT_BYTES: Final = 2000
"""Bytes kept of the start of an output, and of its end."""
EXIT_POLL: Final = 0.5
"""Seconds between checks for an exit, since a child of the command may keep the output open."""
MAX_TITLE: Final = 500
"""Characters of a command that is shown."""
MAX_REASON: Final = 500
"""Characters of the output of a command that could not run."""
EXCERPT: Final = re.compile(r"\s*\d*\s*\|")
"""Begins a line of an excerpt of a file, after which the reason follows."""
NO_MODULE: Final = re.compile(r"No module named '?([\w.]+)'?")
TALLY: Final = re.compile(
    r"\b\d{1,9} \w{0,100}?(error|failed|failure|file|finding|issue|passed|problem)"
)

_numbers = itertools.count(1)


class CommandFailed(Exception):
    """A command could not run; `code` is that of the error."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code


class CompletedCommand(NamedTuple):
    """Result of a command; `exit_code` is None after a timeout."""

    name: str
    command: str
    exit_code: int | None
    seconds: float
    output: str
    problem: str = ""
    """Why it could not run; '' if it could."""

    @property
    def summary(self) -> str:
        """The problem, else the line of the output with the totals, else the last line."""
        if self.exit_code is None:
            return f"timed out after {self.seconds:.0f} s"
        if self.problem:
            return self.problem
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


def run(client: AgentClient, settings: dict[str, Any], tree: Path, part: str) -> CompletedCommand:
    """Run a command of the profile in a part of a tree; paths in its output are relative to it.

    Raises CommandFailed for a required command that could not run, and RunParked after killing the
    command.
    """
    command = settings["command"]
    started = time.monotonic()
    call = {"key": f"command-{next(_numbers)}", "text": shlex.join(command)[:MAX_TITLE]}
    client.send("activity", kind="tool", tool="execute", state="running", **call)
    code, text = _execute(client, command, tree / part, started + settings["timeout"])
    ended = "completed" if code == 0 else "failed"
    client.send("activity", kind="tool", tool="execute", state=ended, **call)
    text = text.replace(f"{tree}/", "")
    problem = _problem(settings, code, text)
    if problem and settings.get("required", True):
        is_missing = code not in settings["error_exits"]
        raise CommandFailed(problem, "command_not_found" if is_missing else "command_failed")
    seconds = time.monotonic() - started
    return CompletedCommand(settings["name"], shlex.join(command), code, seconds, text, problem)


def _problem(settings: dict[str, Any], code: int | None, output: str) -> str:
    """Return why a command could not run; '' if it could."""
    name = settings["name"]
    command = settings["command"]
    if code in settings["error_exits"]:
        return f"command {name!r} could not run (exit {code}): {_reason(output)}"
    lines = output.strip().splitlines() or [f"{command[0]} exited with {code}"]
    missing = None
    if code == NOT_FOUND:
        missing = lines[-1][:300]
    elif code == 1 and _lacks_module(command, output):
        missing = f"{command[0]} has no module {_module(command)}"
    if missing is None:
        return ""
    return (
        f"command {name!r}: {missing}; install it where the sandbox can read it"
        " ([sandbox] read_only), or change the profile"
    )


def _reason(output: str) -> str:
    """Return an output in one line, without excerpts of files; a long one without its middle."""
    lines = [line.strip() for line in output.splitlines() if not EXCERPT.match(line)]
    text = "; ".join(filter(None, lines)) or "no output"
    if len(text) <= MAX_REASON:
        return text
    half = MAX_REASON // 2
    return f"{text[:half]} … {text[-half:]}"


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


def _execute(
    client: AgentClient, command: list[str], folder: Path, deadline: float
) -> tuple[int | None, str]:
    """Run a command; return its exit code, None after the deadline, and its output."""
    quiet = {"NO_COLOR": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        child = subprocess.Popen(
            command,
            cwd=folder,
            env=os.environ | quiet,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except OSError:
        return NOT_FOUND, f"program {command[0]} not found"
    try:
        output, in_time = _read(client, child, deadline)
    finally:
        _kill(child)
    return child.wait() if in_time else None, output.text()


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


def _module(command: list[str]) -> str | None:
    """Return the top-level package of the `-m` argument."""
    after = command[command.index("-m") + 1 :] if "-m" in command else []
    return after[0].partition(".")[0] if after else None


SAFE: Final = "safe fixes"
ALL: Final = "all fixes"
NOTHING: Final = "nothing"
FIXED: Final = re.compile(r"\((\d+) fixed")
NO_FILES: Final = re.compile(r"No \w+ files found")
SHORTSTAT: Final = re.compile(r"(\d+) (file|insertion|deletion)")
COUNTS: Final = ("files", "insertions", "deletions")
COPIED: Final = (stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK)
CONTEXT_LINES: Final = 20
NONE_RAN: Final = (
    "no validators ran: add validation_commands to the repository's profile;"
    " see: draftsman help --page repos#profiles"
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


class Tidy:
    """One run of the agent."""

    def __init__(self, client: AgentClient, indexes: Path) -> None:
        self.client = client
        self.indexes = indexes
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
            levels = offered(survey).items()
            self.finish("; ".join(f"{level}: {text}" for level, text in levels), None, before)
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
        """Run the validators on a copy of the workspace, each without the changes of the others."""
        outcomes = []
        with self.copy() as copy:
            for settings in self.validators:
                ran = run(self.client, settings, copy, self.part)
                passed = ran.exit_code == 0
                outcome = ran.as_json() | {"passed": passed, "required": settings["required"]}
                self.client.send("event", kind="validation_ran", payload=outcome)
                outcomes.append(outcome)
                self.undo(copy)
        return outcomes

    def survey(self) -> dict[str, Outcome]:
        """Return the changes of each level, measured on copies."""
        changes = {}
        for level in (SAFE, ALL):
            with self.copy() as copy:
                ran = [self.fix(fixer, copy) for fixer in self.fixers_of(level)]
                tree = self.written(copy)
                counts = self.count(self.written(self.tree), tree)
                changes[level] = counts | {"findings": _findings(ran), "tree": tree}
            self.client.send("log", text=f"{level}: {describe(changes[level])}")
        return changes

    @contextlib.contextmanager
    def copy(self) -> Iterator[Path]:
        """Yield a copy of the workspace, with the repository of the workspace."""
        with tempfile.TemporaryDirectory(dir=os.environ.get("HOME")) as folder:
            copy = Path(folder, "tree")
            shutil.copytree(self.tree, copy, symlinks=True, ignore=_left_out(self.tree))
            (copy / ".git").write_text(f"gitdir: {self.tree / '.git'}\n")
            yield copy

    def undo(self, copy: Path) -> None:
        """Restore the tracked files of a copy; what a command builds stays for the next."""
        changed = ("--name-only", "--no-renames", "--diff-filter=DMT")
        trees = (self.written(self.tree), self.written(copy))
        for name in filter(None, self.git(copy, "diff", "-z", *changed, *trees).split("\0")):
            target = copy / name
            if target.is_dir() and not target.is_symlink():
                shutil.rmtree(target)
            target.unlink(missing_ok=True)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(self.tree / name, target, follow_symlinks=False)

    def fix(self, fixer: dict[str, Any], tree: Path) -> CompletedCommand:
        """Run a fixer in a tree; raises CommandFailed if it does not end in time."""
        ran = run(self.client, fixer, tree, self.part)
        if ran.exit_code is None:
            text = (
                f"fixer {ran.name!r} exceeded its timeout of {fixer['timeout']:g} s;"
                " increase the timeout in the profile"
            )
            raise CommandFailed(text, "command_timeout")
        return ran

    def fixers_of(self, level: str) -> list[dict[str, Any]]:
        """Return the fixers of a level, unsafe fixers first, so that a formatter runs last."""
        levels = {SAFE: ("safe",), ALL: ("all", "safe"), NOTHING: ()}[level]
        return [fixer for name in levels for fixer in self.fixers if fixer["level"] == name]

    def ask(self, before: list[Outcome], survey: dict[str, Outcome]) -> str:
        """Return the level that a person chose; NOTHING without an answer in time."""
        choices = [{"value": level, "description": text} for level, text in offered(survey).items()]
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
        before = self.written(self.tree)
        for fixer in self.fixers_of(level):
            ran = self.fix(fixer, self.tree)
            self.client.send("event", kind="command_executed", payload=ran.as_json())
        return self.count(before, self.written(self.tree)) | {"level": level}

    def count(self, before: str, after: str) -> Outcome:
        """Return the number of changed files and lines between two trees of files."""
        shown = self.git(self.tree, "diff", "--shortstat", "--no-ext-diff", before, after)
        counts = {noun: int(number) for number, noun in SHORTSTAT.findall(shown)}
        return {name: counts.get(name.removesuffix("s"), 0) for name in COUNTS}

    def written(self, tree: Path) -> str:
        """Return the id of the files in a folder, as a commit would have them."""
        listed = self.git(tree, "ls-files", "-z", "--others", "--exclude-standard").split("\0")
        nested = [f":(exclude,top,literal){name}" for name in listed if name.endswith("/")]
        index = self.indexes / tree.parent.name
        if not index.exists():
            self.git(tree, "read-tree", self.base, index=index)
        self.git(tree, "add", "-A", "--ignore-errors", "--", ":(top)", *nested, index=index, most=1)
        return self.git(tree, "write-tree", index=index).strip()

    def git(self, tree: Path, *arguments: str, index: Path | None = None, most: int = 0) -> str:
        """Run git in a folder, with an index of its own; `most` is its highest exit code."""
        where = (f"--git-dir={self.tree / '.git'}", f"--work-tree={tree}")
        own = {} if index is None else {"GIT_INDEX_FILE": str(index)}
        ran = subprocess.run(
            ["git", *where, *arguments],
            cwd=tree,
            env=os.environ | {"GIT_OPTIONAL_LOCKS": "0"} | own,
            stdout=subprocess.PIPE,
            check=False,
        )
        if ran.returncode > most:
            ran.check_returncode()
        return os.fsdecode(ran.stdout)

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


def offered(survey: dict[str, Outcome]) -> dict[str, str]:
    """Return the levels that change something, described; equal levels are offered once, as safe.

    A checkpoint of an older version has no trees: both of its levels are offered.
    """
    safe, every = survey[SAFE], survey[ALL]  # a checkpoint does not keep the order of its keys
    if "tree" not in safe:
        return {SAFE: describe(safe), ALL: describe(every)}
    if safe["tree"] == every["tree"]:
        return {SAFE: f"{describe(safe)}; {ALL} are the same"}
    if not safe["files"]:
        return {ALL: describe(every)}
    if not every["files"]:
        return {SAFE: describe(safe)}
    other = " of another kind" if describe(safe) == describe(every) else ""
    return {SAFE: describe(safe), ALL: f"{describe(every)}{other}"}


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _findings(ran: list[CompletedCommand]) -> int:
    return sum(int(number) for command in ran for number in FIXED.findall(command.output))


def _left_out(tree: Path) -> Callable[[str, list[str]], list[str]]:
    """Return what is not copied: the repository, and what is no file, folder or link."""

    def names(folder: str, entries: list[str]) -> list[str]:
        kinds = {name: stat.S_IFMT(Path(folder, name).lstat().st_mode) for name in entries}
        odd = [name for name, kind in kinds.items() if kind not in COPIED]
        return [".git", *odd] if Path(folder) == tree else odd

    return names


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
        with tempfile.TemporaryDirectory(dir=os.environ.get("HOME")) as indexes:
            Tidy(client, Path(indexes)).run()
    except RunParked:
        return 0
    except CommandFailed as error:
        is_slow = error.code == "command_timeout"
        return _fail(client, "TRANSIENT_APP" if is_slow else "PERMANENT", error.code, error)
    except RequestRefused as error:
        return _fail(client, error.error_class, "refused", error)
    return 0


def _fail(client: AgentClient, error_class: str, code: str, error: Exception) -> int:
    client.send("error", **{"class": error_class, "code": code, "message": str(error)})
    return 1


if __name__ == "__main__":
    sys.exit(main())
