"""Submission of the lines of a file or of stdin."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from asyncio.subprocess import PIPE, Process
from pathlib import Path

import pytest

from draftsman.errors import UsageError
from draftsman_tui.cli.requests import submit_batch
from draftsman_tui.cli.requests import submit_batch as request_lines
from draftsman_tui.cli.requests.submit_batch import BATCH_LINES
from draftsman_tui.terminal import stdio
from tests.tui.cli.cli_runner import COMMAND, DEADLINE, Cli


def _line(number: int) -> str:
    return json.dumps({"type": "report", "key": f"r{number}"}) + "\n"


def _lines(count: int) -> list[str]:
    return [_line(number) for number in range(count)]


async def test_invalid_line_stops_the_batch_before_its_thousand(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "batch.jsonl"
    lines = _lines(BATCH_LINES + 20)
    lines[BATCH_LINES + 9] = '{"type": "report", "priority": 5000}\n'
    file.write_text("".join(lines))
    stopped = await cli("submit", "--batch", file)
    says = f"{file}:{BATCH_LINES + 10}: priority: must be at most 1000"
    assert (stopped.code, says in stopped.err) == (2, True)
    assert f"; the lines up to {BATCH_LINES:,} are submitted" in stopped.err
    assert stopped.out.splitlines() == [f"D-{number} created" for number in range(1, 1001)]
    lines[BATCH_LINES + 9] = _line(BATCH_LINES + 9)
    file.write_text("".join(lines))
    again = (await cli("submit", "--batch", file, "--json")).json
    assert [job["outcome"] for job in again] == ["deduplicated"] * 1000 + ["created"] * 20
    assert len({job["number"] for job in again}) == len(lines)


async def test_conflicting_key_is_reported_with_its_line(cli: Cli) -> None:
    lines = "".join(_lines(3))
    await cli("submit", "--batch", "-", stdin=lines)
    changed = lines + '{"type": "report", "key": "r1", "title": "other"}\n'
    (await cli("submit", "--batch", "-", stdin=changed)).refused(4, "stdin:4: key 'r1'", "D-2")


async def _start(cli: Cli, *words: str) -> Process:
    return await asyncio.create_subprocess_exec(
        *(*COMMAND, "--config", str(cli.config), "submit", "--batch", "-", *words),
        stdin=PIPE,
        stdout=PIPE,
        stderr=PIPE,
    )


async def test_interrupted_batch_is_continued_by_a_second_run(cli: Cli) -> None:
    lines = _lines(2 * BATCH_LINES + 7)
    first = await _start(cli)
    assert first.stdin
    assert first.stdout
    async with asyncio.timeout(DEADLINE):
        first.stdin.write("".join(lines[: BATCH_LINES + 3]).encode())
        shown = [await first.stdout.readline() for _ in range(BATCH_LINES + 3)]
        first.stdin.write(lines[BATCH_LINES + 3][:10].encode())  # stdin stays open in a line
        first.send_signal(signal.SIGINT)
        _, err = await first.communicate()
    assert (first.returncode, b"Traceback" in err) == (130, False)
    assert shown[-1] == f"D-{BATCH_LINES + 3} created\n".encode()
    second = await _start(cli, "--json")
    async with asyncio.timeout(DEADLINE):
        out, err = await second.communicate("".join(lines).encode())
    assert second.returncode == 0, err
    jobs = json.loads(out)
    old = ["deduplicated"] * (BATCH_LINES + 3)
    new = ["created"] * (BATCH_LINES + 4)
    assert [job["outcome"] for job in jobs] == old + new
    assert len({job["number"] for job in jobs}) == len(lines)


async def test_progress_is_on_the_terminal_if_the_jobs_are_not(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stdio, "is_terminal", lambda stream: stream is sys.stderr)
    monkeypatch.setattr(submit_batch, "PROGRESS_INTERVAL", 0.0)
    lines = _lines(BATCH_LINES + 200)
    done = await cli("submit", "--batch", "-", stdin="".join(lines))
    first, second, total = done.err.split("\r")[1:]
    assert first.startswith("1,000 created, ")
    assert first.endswith("/s\x1b[K")
    assert second.startswith("1,200 created, ")
    assert total.startswith("\x1b[K1,200 created, ")
    assert total.endswith("/s\n")
    assert len(done.out.splitlines()) == len(lines)
    failed = await cli("submit", "--batch", "-", stdin="".join(lines) + "[]")
    assert "1,000 deduplicated, " in failed.err
    assert "the lines up to 1,000 are submitted" in failed.err


async def _read(file: Path) -> list[list[tuple[int, str]]]:
    return [batch async for batch in request_lines.batches(str(file))]


async def test_batches_are_limited_by_lines_and_by_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "lines"
    file.write_bytes(b"\n \r\n" + "é\r\n".encode() * (BATCH_LINES + 1) + b"end")
    first, second = await _read(file)
    assert (len(first), first[0], first[-1]) == (1000, (3, "é\r"), (1002, "é\r"))
    assert second == [(1003, "é\r"), (1004, "end")]
    monkeypatch.setattr(request_lines, "BATCH_CHARACTERS", 10)
    monkeypatch.setattr(request_lines, "_BLOCK", 1)  # cuts each character of two bytes
    file.write_text("ü" * 11 + "\n12345\n123456\n7")
    sizes = [[len(text) for _, text in batch] for batch in await _read(file)]
    assert sizes == [[11], [5, 6], [1]]


async def test_unreadable_lines_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "lines"
    file.write_bytes(b"a\n\xff\n")
    with pytest.raises(UsageError, match="not UTF-8 text; convert the file to UTF-8"):
        await _read(file)
    monkeypatch.setattr(request_lines, "MAX_LINE", 5)
    file.write_text("a\nbcdefg")
    with pytest.raises(UsageError, match=":2: longer than 5 characters"):
        await _read(file)
