"""Submission of the requests in a file, a batch of lines at a time."""

from __future__ import annotations

import asyncio
import codecs
import io
import select
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from draftsman.actions.action import Call
from draftsman.actions.requests import submit_many, submitted
from draftsman.errors import IdempotencyConflict, UsageError
from draftsman_tui.cli.app import App
from draftsman_tui.cli.perform import call_of
from draftsman_tui.common.requests import options_named
from draftsman_tui.terminal import params, stdio

if TYPE_CHECKING:
    from draftsman.jobs.requests.invocation import Invocation
    from draftsman.jobs.requests.service.submissions import SubmittedJob
    from draftsman.runtime import Runtime


BATCH_LINES: Final = 1000
"""Maximum number of lines of a batch."""
BATCH_CHARACTERS: Final = 16 * 1024 * 1024
"""Maximum number of characters of a batch, which bounds memory; the last line may exceed it."""
MAX_LINE: Final = 16 * 1024 * 1024
"""Maximum number of characters of a line: a request of 1 MiB in which all are escaped has 6 MiB."""
_BLOCK: Final = 256 * 1024
_POLL: Final = 0.2
"""Seconds after which lines of a slow writer are submitted, and a canceled read ends."""


async def batches(file: str) -> AsyncIterator[list[tuple[int, str]]]:
    """Yield batches of numbered lines without blank lines; `-` reads stdin.

    A batch has the lines that are there, so that a slow writer's lines do not wait for more. Raises
    UsageError.
    """
    decode = codecs.getincrementaldecoder("utf-8")("replace" if file == "-" else "strict").decode
    lines: list[tuple[int, str]] = []
    number = 0
    size = 0
    incomplete = ""
    with _opened(file) as stream:
        ended = False
        while not ended:
            if (block := await asyncio.to_thread(_read, stream)) is None:
                if lines:
                    yield lines
                    lines = []
                    size = 0
                continue
            ended = not block
            try:
                text = incomplete + decode(block, final=ended)
            except UnicodeDecodeError:
                raise UsageError(f"{file}: not UTF-8 text; convert the file to UTF-8") from None
            *complete, incomplete = text.split("\n")
            if ended:
                complete.append(incomplete)
            for line in complete:
                number += 1
                if not line or line.isspace():
                    continue
                lines.append((number, line))
                size += len(line)
                if len(lines) == BATCH_LINES or size > BATCH_CHARACTERS:
                    yield lines
                    lines = []
                    size = 0
            if len(incomplete) > MAX_LINE:
                name = "stdin" if file == "-" else file
                raise UsageError(f"{name}:{number + 1}: longer than {MAX_LINE:,} characters")
    if lines:
        yield lines


@contextmanager
def _opened(file: str) -> Iterator[BinaryIO]:
    if file == "-":
        yield sys.stdin.buffer
        return
    try:
        with Path(file).open("rb") as stream:
            yield stream
    except OSError as error:
        raise UsageError(f"{file}: {error.strerror}; use a readable file") from None


def _read(stream: Any) -> bytes | None:
    """Return the next block, b"" at the end, and None if nothing arrived for a while."""
    try:
        ready, _, _ = select.select([stream], [], [], _POLL)
    except io.UnsupportedOperation:  # not a file of the operating system
        ready = [stream]
    return stream.read1(_BLOCK) if ready else None


PROGRESS_INTERVAL: Final = 0.5
"""Seconds between two updates of the progress."""


async def submit_batch(app: App, file: str, fields: dict[str, Any], *, unchecked: bool) -> None:
    """Submit each line of a file; `fields` are the defaults of every line.

    A batch of lines is validated before any of its jobs is created. Raises UsageError and
    IdempotencyConflict that name the line.
    """
    name = "stdin" if file == "-" else file
    progress = Progress(app)
    warnings: set[str] = set()
    names: dict[str, int] = {}
    with app.out.array() as output:
        async with app.runtime() as rt:
            call = await call_of(app, rt)
            try:
                async for lines in batches(file):
                    numbers = [number for number, _ in lines]
                    try:
                        requests = [
                            await _request(f"{name}:{number}", text, fields, rt, unchecked)
                            for number, text in lines
                        ]
                    except UsageError as error:
                        raise UsageError(f"{error}{progress.submitted_text()}") from None
                    requests = [_with_earlier(item, names) for item in requests]
                    jobs = await _submit(call, requests, name, numbers)
                    for item, job in zip(requests, jobs, strict=True):
                        if item.name is not None:
                            names[item.name] = job.number
                    progress.add(jobs, numbers[-1])
                    for warning in {job.warning for job in jobs if job.warning} - warnings:
                        progress.clear()
                        app.out.info(f"warning: {warning}")
                        warnings.add(warning)
                    if app.json:
                        output(jobs)
                    else:
                        app.out.write("".join(f"{submitted(job)}\n" for job in jobs))
            except BaseException:
                progress.clear()
                raise
    if not progress.line:
        raise UsageError(f"{file}: no requests found; write one JSON object per line")
    progress.end()


async def _request(
    origin: str, text: str, fields: dict[str, Any], rt: Runtime, unchecked: bool
) -> Invocation:
    """Return the checked request of a line; raises UsageError that names the line."""
    from draftsman.jobs.requests.invocation import Invocation
    from draftsman.jobs.requests.service.request_checks import build_request

    line_fields = params.json_object(text, origin)
    if unknown := sorted(line_fields.keys() - Invocation.model_fields.keys()):
        allowed = ", ".join(Invocation.model_fields)
        raise UsageError(f"{origin}: unknown field {unknown[0]!r}; allowed: {allowed}")
    try:
        with options_named():
            request = build_request(fields | line_fields, rt.settings)
            return await rt.request_checks.resolve(request, unchecked=unchecked)
    except UsageError as error:
        raise UsageError(f"{origin}: {error}") from None


def _with_earlier(item: Invocation, names: Mapping[str, int]) -> Invocation:
    """Replace the names of requests of earlier batches by their jobs."""
    after = tuple(
        names.get(parent, parent) if isinstance(parent, str) else parent for parent in item.after
    )
    return item.model_copy(update={"after": after}) if after != item.after else item


async def _submit(
    call: Call, requests: Sequence[Invocation], name: str, numbers: Sequence[int]
) -> list[SubmittedJob]:
    try:
        return (await submit_many(call, requests)).value
    except IdempotencyConflict as error:
        line = "" if error.place is None else f"{name}:{numbers[error.place]}: "
        raise IdempotencyConflict(f"{line}{error}", job=error.job) from None
    except UsageError as error:
        raise UsageError(f"{name}: lines {numbers[0]} to {numbers[-1]}: {error}") from None


class Progress:
    """The number of lines submitted, shown on stderr if stdout does not show the jobs."""

    def __init__(self, app: App) -> None:
        self.line = 0
        """The last line of the last batch, whose jobs exist."""
        self._counts = Counter[str]()
        self._app = app
        self._is_shown = stdio.is_terminal(sys.stderr) and not app.out.on_screen
        self._began = self._updated = time.monotonic()

    def add(self, jobs: Sequence[SubmittedJob], line: int) -> None:
        """Count the jobs of a batch that ends with this line."""
        self.line = line
        self._counts.update(job.outcome for job in jobs)
        if self._is_shown and time.monotonic() - self._updated > PROGRESS_INTERVAL:
            self._updated = time.monotonic()
            stdio.write_stderr(f"\r{self._text()}\x1b[K")

    def clear(self) -> None:
        """Replace the progress of a failed or interrupted command by what was submitted."""
        if self._is_shown:
            stdio.write_stderr("\r\x1b[K")
            if self.line:
                self._app.out.info(f"{self._text()}; the lines up to {self.line:,} are submitted")

    def end(self) -> None:
        """Show the totals."""
        if self._is_shown:
            stdio.write_stderr(f"\r\x1b[K{self._text()}\n")

    def submitted_text(self) -> str:
        """Return what an error says of the lines before it."""
        return f"; the lines up to {self.line:,} are submitted" if self.line else ""

    def _text(self) -> str:
        total = self._counts.total()
        counts = ", ".join(f"{count:,} {outcome}" for outcome, count in self._counts.items())
        rate = total / max(time.monotonic() - self._began, 0.001)
        return f"{counts}, {rate:,.0f}/s"
