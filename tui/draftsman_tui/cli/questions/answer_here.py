"""Questions of a followed job, asked on the terminal that follows it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import termios
from typing import TYPE_CHECKING, Final

from draftsman.deliveries.plain_text import missing_diff, resolution_text
from draftsman.errors import DraftsmanError, UsageError
from draftsman.questions.question import QuestionKind, QuestionStatus
from draftsman_tui.entities.answers import build_response, outcome_text, submit_response
from draftsman_tui.entities.artifacts import read_patch
from draftsman_tui.entities.questions import answer_command, describe
from draftsman_tui.terminal.output import line, plain, styled
from draftsman_tui.terminal.stdio import write_stderr

if TYPE_CHECKING:
    from draftsman.questions.question import Question
    from draftsman.questions.response import Response
    from draftsman.runtime import Runtime
    from draftsman_tui.cli.app import App

POLL_INTERVAL: Final = 1.0
"""Seconds between looks at a question that other people may answer."""
MAX_LINE: Final = 65536
"""Bytes of a line that are read at a time."""
YES: Final = ("y", "yes", "approve")
NO: Final = ("n", "no", "deny")


class QuestionPrompter:
    """Prints each open question once, and asks for its answer if this is a terminal."""

    def __init__(self, app: App, rt: Runtime) -> None:
        self._app = app
        self._rt = rt
        self._printed: set[str] = set()
        self._asks = app.out.interactive and not app.json

    async def ask(self, number: int) -> None:
        """Print the open questions of a job, and ask for their answers."""
        for question in await self._rt.questions.open(number):
            if question.name not in self._printed:
                self._printed.add(question.name)
                self._app.out.print_stderr(*await describe(self._rt, question))
                if self._asks:
                    await self._prompt(question)

    async def _prompt(self, question: Question) -> None:
        """Ask until the question is closed; an empty line leaves it open."""
        while True:
            text = await self._read(question, _prompt_text(question))
            if text is None:
                return
            if question.kind is QuestionKind.APPROVAL and text.lower() == "d":
                patch = await read_patch(self._rt, question.job, question.run)
                write_stderr(plain(patch or "no changes\n"))
                continue
            try:
                response = await self._response(question, text)
                if response is None:
                    return
                actor = await self._rt.actor()
                verdict = await submit_response(
                    self._rt, question.job, question.ordinal, response, actor
                )
            except UsageError as error:
                self._app.out.info(str(error))
            except DraftsmanError as error:
                self._app.out.info(str(error))
                return
            else:
                name = styled(verdict.name, "bold")
                self._app.out.print_stderr(line(name, f" {await outcome_text(self._rt, verdict)}"))
                return

    async def _response(self, question: Question, text: str) -> Response | None:
        """Return the answer; None if the question closed meanwhile. Raises UsageError."""
        if question.kind is not QuestionKind.APPROVAL:
            return build_response(text=text)
        if text.lower() not in (*YES, *NO):
            raise UsageError(f"{text[:60]!r}: enter y to approve, n to deny, d for the diff")
        approves = text.lower() in YES
        if approves:
            return build_response(decision=True)
        reason = await self._read(question, "Reason (optional): ", optional=True)
        return None if reason is None else build_response(decision=False, reason=reason or None)

    async def _read(self, question: Question, prompt: str, *, optional: bool = False) -> str | None:
        """Read a line, unless the question closes first; None: closed, or left open.

        Text typed before the prompt is dropped: it was not about this question.
        """
        with contextlib.suppress(termios.error):
            termios.tcflush(sys.stdin, termios.TCIFLUSH)
        write_stderr(prompt)
        reading = asyncio.create_task(_read_line())
        closing = asyncio.create_task(self._closed(question))
        try:
            await asyncio.wait({reading, closing}, return_when=asyncio.FIRST_COMPLETED)
            if reading.done():
                text = reading.result()
                if text or optional:
                    return text
                self._app.out.info(f"{question.name} stays open; to answer it:")
                self._app.out.print_stderr(answer_command(question))
                return None
            current = closing.result()
            self._app.out.info(f"\n{current.name} {resolution_text(current)}")
            return None
        except asyncio.CancelledError:
            write_stderr("\n")  # the prompt has none
            raise
        finally:
            for task in (reading, closing):
                task.cancel()
            await asyncio.gather(reading, closing, return_exceptions=True)

    async def _closed(self, question: Question) -> Question:
        while True:
            current = await self._rt.questions.get(question.job, question.ordinal)
            if current.status is not QuestionStatus.OPEN:
                return current
            await asyncio.sleep(POLL_INTERVAL)


async def _read_line() -> str:
    """Read a line of the terminal without blocking the event loop; "" at its end."""
    loop, ready = asyncio.get_running_loop(), asyncio.Event()
    number, data = sys.stdin.fileno(), b""
    loop.add_reader(number, ready.set)
    try:
        while not data.endswith(b"\n"):
            await ready.wait()
            ready.clear()
            part = os.read(number, MAX_LINE)
            if not part:
                break
            data += part
    finally:
        loop.remove_reader(number)
    return data.decode("utf-8", "replace").strip()


def _prompt_text(question: Question) -> str:
    if question.kind is QuestionKind.APPROVAL:
        diff = "" if missing_diff(question) else "d: diff, "
        return f"Approve {question.name}? y, n, {diff}enter: not now: "
    return f"Answer to {question.name} (enter: not now): "
