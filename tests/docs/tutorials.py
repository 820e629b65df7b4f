"""Tutorials and the README: their blocks in order, and a shell that does what a reader would do.

A block of Python whose first line is a comment with a name is that file. A block of `text` after
one of `sh` is what the commands print: these lines, in this order, with anything for `…`. A
block of `bash` is shown, and not run.
"""

from __future__ import annotations

import re
import select
import subprocess
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.docs.pages import DOCS

NAMES: Final = ("tutorial-jobs.md", "tutorial-agents.md", "../README.md")
BLOCK: Final = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILE: Final = re.compile(r"# ([\w.]+)\n")
REPEATABLE: Final = re.compile(r"draftsman (types|questions|show|diff)[^\n]*\n")
"""Commands that only read: their output may come a moment later."""
DEADLINE: Final = 60.0


@dataclass(frozen=True, slots=True)
class Step:
    """What a reader does: writes a file, or runs commands and sees an output."""

    code: str
    file: str | None = None
    output: tuple[str, ...] = ()


def steps(name: str) -> Iterator[Step]:
    """Yield the steps of a page."""
    blocks = BLOCK.findall((DOCS / name).read_text(encoding="utf-8"))
    for number, (language, code) in enumerate(blocks):
        following = blocks[number + 1] if number + 1 < len(blocks) else ("", "")
        if language == "sh":
            lines = following[1].splitlines() if following[0] == "text" else []
            yield Step(code, output=tuple(lines))
        elif language == "python":
            found = FILE.match(code)
            assert found, f"{name}: a block without the name of its file: {code}"
            yield Step(code, file=found[1])
        else:
            assert language in ("text", "bash"), f"{name}: nothing runs a block of {language}"


def is_seen(expected: tuple[str, ...], output: str) -> bool:
    """Return whether an output has these lines, in this order."""
    lines = [line for line in expected if line != "…"]
    pattern = "(?s:.*)".join(
        r"^\s*" + ".*".join(map(re.escape, line.strip().split("…"))) for line in lines
    )
    return re.search(pattern, output, re.MULTILINE) is not None


class Shell:
    """A bash with job control, which keeps its folder and variables."""

    def __init__(self, folder: Path, env: Mapping[str, str]) -> None:
        command = ["bash", "--norc", "--noprofile", "-s"]
        self._bash = subprocess.Popen(
            command,
            cwd=folder,
            env=dict(env),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self._count = 0

    def run(self, code: str) -> tuple[str, int]:
        """Run commands; return their output, and the exit code of the first that failed."""
        self._count += 1
        end = f"end-{self._count}:"
        guarded = f"{{ _code=0; trap '_code=$?' ERR\n{code.rstrip()}\n}} < /dev/null\n"
        script = f'{guarded}trap - ERR\necho "\n{end}$_code"\n'
        assert self._bash.stdin is not None
        self._bash.stdin.write(script.encode())
        self._bash.stdin.flush()
        output = self._read_until(re.compile(rf"\n{end}(\d+)\n"))
        text, _, code_text = output.partition(f"\n{end}")
        return text, int(code_text)

    def close(self) -> None:
        """End it, and what it started."""
        self.run("kill $(jobs -p) 2> /dev/null || true\nwait")
        self._bash.communicate(timeout=DEADLINE)

    def _read_until(self, end: re.Pattern[str]) -> str:
        assert self._bash.stdout is not None
        deadline = time.monotonic() + DEADLINE
        output = ""
        while end.search(output) is None:
            left = deadline - time.monotonic()
            ready, _, _ = select.select([self._bash.stdout], [], [], max(left, 0))
            assert ready, f"no end within {DEADLINE:.0f} s: {output}"
            data = self._bash.stdout.read1()  # type: ignore[attr-defined]
            assert data, f"the shell ended: {output}"
            output += data.decode()
        return output


def follow(name: str, shell: Shell) -> None:
    """Do what a page says; fails where the reader would see something else."""
    for step in steps(name):
        if step.file is not None:
            output, code = shell.run(f"cat > {step.file} <<'END OF FILE'\n{step.code}END OF FILE")
        else:
            output, code = shell.run(step.code)
            deadline = time.monotonic() + DEADLINE
            while (
                not is_seen(step.output, output)
                and REPEATABLE.fullmatch(step.code)
                and time.monotonic() < deadline
            ):
                output, code = shell.run(step.code)
        assert code == 0, f"{name}: {step.code}exits with {code}: {output}"
        assert is_seen(step.output, output), f"{name}: {step.code}prints {output}"
