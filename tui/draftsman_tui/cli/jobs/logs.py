"""The `logs` command: output and activity of the runs of a job."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Any

import click

from draftsman.agent_runs.activity.activity import (
    TEXT_KINDS,
    ActivityKind,
    ActivityRow,
    activity_meaning,
    activity_text,
)
from draftsman.errors import UsageError
from draftsman.formats.shown_zone import shown
from draftsman.ids import JobRef, job_name
from draftsman.jobs.reserved_names import TRANSCRIPT
from draftsman_tui.cli.app import App, command, number_of
from draftsman_tui.common.events import no_log
from draftsman_tui.terminal import params
from draftsman_tui.terminal.colors import STYLES
from draftsman_tui.terminal.output import CommandOutput, line, plain, styled


@command(
    "logs",
    section="Jobs",
    examples=(
        "draftsman logs D-142",
        "draftsman logs -f D-142",
        "draftsman logs --activity D-142",
        "draftsman logs -t D-142",
        "draftsman logs -f --json D-142",
    ),
)
@click.argument("job", type=params.JOB_OF)
@click.option("-f", "--follow", is_flag=True, help="Stream until the job ends, over all its runs.")
@click.option("--activity", is_flag=True, help="Only the activity of the agent.")
@click.option("--output", is_flag=True, help="Only the output of programs.")
@click.option("-t", "--timestamps", is_flag=True, help="Start each line with its local time.")
async def logs(
    app: App, job: JobRef, follow: bool, activity: bool, output: bool, timestamps: bool
) -> None:
    """Print the output of a job's runs and the activity of its agent.

    Activity has the messages, calls of tools, files, plan and tokens of the agent. The newest rows
    are kept; the artifact transcript.jsonl of a run has all of them.
    """
    if activity and output:
        raise UsageError("--activity and --output cannot be combined")
    async with app.runtime(read_only=True) as rt:
        number = await number_of(rt, job)
        printer = LogPrinter(app.out, number, timestamps=timestamps)
        with app.out.paged(unless=follow):
            async for item in rt.log_feed.items(
                number,
                follow=follow,
                output=not activity,
                activity=not output,
            ):
                if app.json:
                    app.out.item(item)
                else:
                    printer.print(item)
            if printer.run or app.json:
                printer.end()
        if printer.run or app.json:
            return
        if activity:
            app.out.info(f"{job_name(number)} has no activity; see: draftsman logs --output")
        else:
            retention = rt.settings.retention.logs
            app.out.info(f"{no_log(number, retention)}; see: draftsman events {job_name(number)}")


class LogPrinter:
    """Prints output unchanged, and activity as lines between; `headings`: the runs on stderr.

    With `timestamps`, each line starts with the local time at which its start was stored.
    """

    def __init__(
        self,
        out: CommandOutput,
        number: int,
        *,
        headings: bool = True,
        timestamps: bool = False,
    ) -> None:
        self._out = out
        self._headings = headings
        self._timestamps = timestamps
        self._at: datetime | None = None
        """When the item that is printed was stored."""
        self._number = number
        self._newline = True
        """Whether the next text begins a line."""
        self._in_message = False
        self.run = 0

    def print(self, item: Any) -> None:
        """Print an item of `LogFeed.items`."""
        self._at = item.created_at
        if item.run != self.run:
            self.end()
            self.run = item.run
            if self._headings:
                self._print_heading(item)
        if not isinstance(item, ActivityRow):
            if self._in_message:
                self.end()
            self._in_message = False
            self._write(plain(item.text) if self._out.on_screen else item.text)
        elif item.kind == ActivityKind.MESSAGE:
            if not item.continues:
                self.end()
            self._in_message = True
            self._write(plain(item.text))
        else:
            self.end()
            meaning = activity_meaning(item)
            style = STYLES[meaning] if meaning else "bold" if item.kind == ActivityKind.PLAN else ""
            self._out.print(line(styled(self._stamp(), "dim"), styled(_one_item(item), style)))

    def _print_heading(self, item: Any) -> None:
        self._out.info(f"-- run {self._number}.{item.run} --")
        if isinstance(item, ActivityRow) and item.seq > 1:
            self._out.info(
                "earlier activity was deleted; the transcript has it:"
                f" draftsman artifacts get {job_name(self._number)} {TRANSCRIPT}"
            )

    def end(self) -> None:
        """End the current line."""
        if not self._newline:
            self._write("\n")

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


def _one_item(item: ActivityRow) -> str:
    text = activity_text(item)
    return text.rstrip("\n") if item.kind in TEXT_KINDS else " ".join(text.split())


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
