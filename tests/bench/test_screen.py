"""The terminal emulator of the benchmarks."""

from __future__ import annotations

import sys

import pytest

from bench.screen import Screen, Terminal
from bench.server import BenchError
from tests.support.cases import cases


def test_drawn_text_is_on_the_screen() -> None:
    screen = Screen()
    screen.feed(b"\x1b[?1049h\x1b[2;3H\x1b[1;38;2;1;2;3mhello\x1b[0m there\x1b[1;1Htop")
    assert screen.lines[:3] == ["top", "  hello there", ""]
    screen.feed(b"\x1b[2;5HY\x1b[2;9H\x1b[K")
    assert screen.lines[1] == "  heYlo"
    screen.feed(b"\x1b[2J")
    assert set(screen.lines) == {""}


@cases("size", [1, 2, 3, 7])
def test_output_may_arrive_in_pieces(size: int) -> None:
    output = "\x1b[1;1Hä▸\x1b]0;title\x07\x1b[2;1H\x1b[7mé\x1b[0m".encode()
    screen = Screen()
    for at in range(0, len(output), size):
        screen.feed(output[at : at + size])
    assert screen.lines[:2] == ["ä▸", "é"]


async def test_key_is_timed_until_its_effect_is_shown() -> None:
    program = "print('ready', flush=True); print('got', input(), flush=True); input()"
    terminal = Terminal([sys.executable, "-c", program], {})
    at = await terminal.shows(lambda now: now.lines[0] == "ready", "it")
    assert terminal.taken is not None
    assert terminal.began < terminal.taken <= at
    assert await terminal.key("x\r", lambda now: "got x" in now.lines) > 0
    assert await terminal.close("\r") == 0


async def test_missing_output_raises_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.screen.PATIENCE", 0.2)
    terminal = Terminal([sys.executable, "-c", "print('ready', flush=True); input()"], {})
    await terminal.shows(lambda now: "ready" in now.lines, "it")
    with pytest.raises(BenchError, match="'k': not shown within"):
        await terminal.key("k", lambda now: "never" in now.lines)
    await terminal.close("\r")
