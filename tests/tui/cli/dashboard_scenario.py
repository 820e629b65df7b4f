"""A scenario on the dashboard of `draftsman up`."""

from __future__ import annotations

import asyncio

from draftsman.jobs.job import Status
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from tests.tui.cli.cli_runner import DEADLINE
from tests.tui.cli.terminal_screen import ScreenView, see, see_that

ASK_HANDLER = '\nhandlers.ask = "tests.tui.cli.handlers:ask"\n'
"""Configuration of the scenario."""


async def answer_and_resume(view: ScreenView, make: Factory, rt: Runtime) -> None:
    """Wait for a question, answer it, and wait for the end of its job."""
    number = await make.queued(type="ask", queue="default", title="Paint the shed", agent="painter")
    see(view, f"D-{number}", "question", "Paint the shed", "waiting 1")
    view.type("2")
    see(view, f"D-{number}/1", "Which color?")
    view.type("a")
    see(view, "1  red", "2  blue")
    view.type("2")
    see(view, "No open questions", "waiting 0")
    assert await asyncio.wait_for(rt.read_model.wait(number), DEADLINE) is Status.COMPLETED
    assert (await rt.read_model.job(number)).result == {"color": "blue"}
    view.type("1")
    see(view, f"D-{number}", "completed")


def change_size(view: ScreenView, columns: int, lines: int) -> None:
    """Resize it to its minimum, where a column is hidden, and back."""
    for width, height, by in ((80, 24, False), (columns, lines, True)):
        view.resize(width, height)
        see_that(
            view,
            lambda shown, last=height - 1, by=by: (  # type: ignore[misc]
                "jobs · 1" in shown[2]
                and ("AGENT" in " ".join(shown[3:5]).split()) is by
                and "Paint the shed" in "".join(shown[4:6])
                and "q quit" in shown[last]
            ),
            f"all of it in {width} columns and {height} lines",
        )
