"""Printers of the entries of a log: as text for people and pipes, and as JSON."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from draftsman.agent_runs.activity.activity import TEXT_KINDS, ActivityKind
from draftsman.agent_runs.activity.log_entries import (
    END,
    OUTPUT,
    LogEntry,
    entry_meaning,
    entry_text,
)
from draftsman.formats import times
from draftsman.formats.shown_zone import shown
from draftsman.ids import job_name, run_text
from draftsman.jobs.details.log_lines import (
    FOLDED_LINES,
    entry_line,
    fold,
    folded_title,
    markdown_lines,
)
from draftsman.jobs.details.sections.section import Line, faint
from draftsman.jobs.reserved_names import TRANSCRIPT
from draftsman_tui.common.sections import line_text
from draftsman_tui.terminal.colors import STYLES
from draftsman_tui.terminal.live_region import LiveRegion
from draftsman_tui.terminal.output import CommandOutput, line, plain, styled

if TYPE_CHECKING:
    from collections.abc import Sequence

MIN_TITLE: Final = 24
"""Characters of the title of a call that are shown on any screen."""
FOLDED_TITLE: Final = 56
"""Columns beside a folded title: the mark, the tool, the hidden characters and the time."""
_BLOCK: Final = re.compile(r"\n[ \t]*\n(?=\S)")
"""The end of a block of Markdown: a blank line before one that is not indented."""
_FENCE: Final = re.compile(r"^ {0,3}(?:```|~~~)", re.MULTILINE)


class LogPrinter:
    """Prints entries as text, with a head before each run from the run `headed_from`.

    A call is a line once it has ended. On a terminal Markdown is rendered, and `folds` shows long
    texts with the number of hidden lines; `live` shows the open calls in the last rows, with
    `rest`. Elsewhere texts are unchanged. With `timestamps`, each line starts with the local time
    at which its start was stored.
    """

    def __init__(
        self,
        out: CommandOutput,
        number: int,
        *,
        headed_from: int | None = 1,
        timestamps: bool = False,
        folds: bool = False,
        live: bool = False,
    ) -> None:
        self._out = out
        self._number = number
        self._headed_from = headed_from
        self._timestamps = timestamps
        self._folds = folds and out.on_screen
        self._live = live
        self._region = LiveRegion(out) if live and out.has_cursor else None
        self._at: datetime | None = None
        """When the entry that is printed was stored."""
        self._newline = True
        """Whether the next text begins a line."""
        self._kind = ""
        """Kind of the text that is being printed."""
        self._text = ""
        """The part of it that is not printed yet."""
        self._has_blocks = False
        """Whether blocks of the text were printed."""
        self._calls: dict[str, LogEntry] = {}
        self.run = 0

    def print(self, entry: LogEntry) -> None:
        """Print an entry."""
        self._clear()
        if entry.run != self.run:
            self.end()
            self.run = entry.run
            self._print_heading(entry)
        if entry.kind == OUTPUT or entry.kind in TEXT_KINDS:
            self._add_text(entry)
            return
        if entry.kind == END:
            self._print_end(entry)
            return
        if entry.is_open:
            self._calls[entry.id] = entry
            return
        self._calls.pop(entry.id, None)
        self._print_entry(entry)

    def rest(self) -> None:
        """Show what is not complete, if the terminal can replace it later."""
        if self._region is None or not self._newline:
            return
        lines = self._lines(self._kind, self._text)
        lines += [self._entry_line(call) for call in self._calls.values()]
        self._region.show(*(line_text(*item) for item in lines))

    def end(self) -> None:
        """End the current text and line."""
        self._clear()
        self._flush()
        self._kind = ""
        if not self._newline:
            self._write("\n")

    def close(self) -> None:
        """End the log, with the calls that still run."""
        self.end()
        for call in self._calls.values():
            self._print_entry(call)
        self._calls.clear()

    def _print_heading(self, entry: LogEntry) -> None:
        if self._headed_from is None:
            return
        if entry.run >= self._headed_from:
            self._out.print(styled(f"-- {run_text(entry.run, self._number)} --", "dim"))
        if entry.kind != OUTPUT and entry.seq > 1:
            self._out.info(
                "earlier activity was deleted; the transcript has it:"
                f" draftsman artifacts get {job_name(self._number)} {TRANSCRIPT}"
            )

    def _print_end(self, entry: LogEntry) -> None:
        """Print how the run ended, and when."""
        self.end()
        at = times.clock(entry.created_at, datetime.now(UTC))
        meaning = entry_meaning(entry)
        self._out.print(styled(f"-- {entry.text}, {at} --", STYLES[meaning] if meaning else ""))

    def _print_entry(self, entry: LogEntry) -> None:
        self.end()
        self._at = entry.ended_at or entry.created_at
        self._print_lines([self._entry_line(entry)])

    def _entry_line(self, entry: LogEntry) -> Line:
        """Return an entry that is a line; the title of a call is folded so that it is a row."""
        now = datetime.now(UTC)
        text = entry_text(entry, now)
        if self._folds and entry.is_call and len(text) > self._out.width:
            title = folded_title(entry.text, max(MIN_TITLE, self._out.width - FOLDED_TITLE))
            text = entry_text(replace(entry, text=title), now)
        return entry_line(entry, text)

    def _add_text(self, entry: LogEntry) -> None:
        """Print a piece of a text, or keep it until it is complete."""
        if entry.kind != self._kind or not (entry.continues or entry.kind == OUTPUT):
            self.end()
            self._kind = entry.kind
            self._has_blocks = False
        if entry.kind == OUTPUT and (self._live or not self._folds):
            self._at = entry.created_at
            self._write(plain(entry.text) if self._out.on_screen else entry.text)
            return
        if entry.kind == ActivityKind.MESSAGE and not self._out.on_screen:
            self._at = entry.created_at
            self._write(plain(entry.text))
            return
        if not self._text:
            self._at = entry.created_at
        self._text += entry.text
        if self._region is not None and entry.kind == ActivityKind.MESSAGE:
            complete, self._text = _complete_blocks(self._text)
            self._print_lines(self._lines(entry.kind, complete))

    def _flush(self) -> None:
        text = self._text
        self._text = ""
        if text.strip("\n"):
            self._print_lines(self._lines(self._kind, text))

    def _lines(self, kind: str, text: str) -> list[Line]:
        """Return the lines of a text; messages are in blocks with a blank line between."""
        text = text.strip("\n")
        if not text:
            return []
        if kind == ActivityKind.MESSAGE and self._out.on_screen:
            lead: list[Line] = [()] if self._has_blocks else []
            return [*lead, *markdown_lines(text)]
        is_thought = kind == ActivityKind.THOUGHT
        lines: list[Line] = [(faint(words) if is_thought else words,) for words in text.split("\n")]
        if not self._folds:
            return lines
        begin, hidden, end = fold(lines, FOLDED_LINES.get(kind, len(lines)))
        note: list[Line] = [(faint(f"… {hidden:,} more lines; --full shows them"),)]
        return [*begin, *(note if hidden else ()), *end]

    def _print_lines(self, lines: Sequence[Line]) -> None:
        for item in lines:
            self._out.print(line(styled(self._stamp(), "dim"), line_text(*item)))
            self._has_blocks = True

    def _clear(self) -> None:
        if self._region is not None:
            self._region.clear()

    def _write(self, text: str) -> None:
        if not text:
            return
        stamp = self._stamp()
        if stamp:
            lead = stamp if self._newline and text != "\n" else ""
            body = text.removesuffix("\n")
            text = lead + body.replace("\n", f"\n{stamp}") + text[len(body) :]
        self._out.write(text)
        self._newline = text.endswith("\n")

    def _stamp(self) -> str:
        if not self._timestamps or self._at is None:
            return ""
        return f"{shown(self._at):%Y-%m-%d %H:%M:%S}  "


class JsonLogPrinter:
    """Prints a JSON line for each entry, once it is complete; with `job`, it has that number."""

    def __init__(self, out: CommandOutput, job: int | None = None) -> None:
        self._out = out
        self._job = {} if job is None else {"job": job}
        self._text: LogEntry | None = None
        """The message or thought that is not complete."""
        self._calls: dict[str, LogEntry] = {}

    def print(self, entry: LogEntry) -> None:
        """Print an entry, or keep it until it is complete."""
        if self._text is not None and entry.continues and entry.kind == self._text.kind:
            self._text = replace(self._text, text=self._text.text + entry.text)
            return
        self._flush()
        if entry.kind in TEXT_KINDS:
            self._text = entry
        elif entry.is_open:
            self._calls[entry.id] = entry
        else:
            self._calls.pop(entry.id, None)
            self._out.item(self._job | entry.as_json())

    def close(self) -> None:
        """Print the rest."""
        self._flush()
        for call in self._calls.values():
            self._out.item(self._job | call.as_json())
        self._calls.clear()

    def _flush(self) -> None:
        if self._text is not None:
            self._out.item(self._job | self._text.as_json())
            self._text = None


class LogProgress:
    """Order between a followed log and other text of the same terminal.

    Each print holds `lock`, so that no line of the log is added to the prompt of a question.
    """

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self._idle = asyncio.Event()
        self._ended = False

    def caught_up(self) -> None:
        """Note that all that is stored was printed."""
        self._idle.set()

    def end(self) -> None:
        """Note that nothing more is printed."""
        self._ended = True
        self._idle.set()

    async def wait(self) -> None:
        """Wait until the items stored by now were printed, or until the log ends."""
        if not self._ended:
            self._idle.clear()
            await self._idle.wait()


def _complete_blocks(text: str) -> tuple[str, str]:
    """Return the blocks of a growing text in Markdown that are complete, and the rest."""
    end = 0
    for found in _BLOCK.finditer(text):
        if len(_FENCE.findall(text, 0, found.start() + 1)) % 2 == 0:
            end = found.end()
    return text[:end], text[end:]
