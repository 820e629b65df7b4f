"""The `note` and `progress` commands, with which a program in a run reports to people."""

from __future__ import annotations

import re
from typing import Final

import click

from draftsman.errors import UsageError
from draftsman_tui.cli.app import App, command
from draftsman_tui.common import run_socket
from draftsman_tui.terminal import params

MAX_NOTE: Final = 5000
"""Maximum characters of a note."""
PART: Final = re.compile(r"(\d{1,15})/(\d{1,15})|(\d{1,3})%")


@command(
    "note",
    section="Programs",
    examples=("draftsman note 'The schema has two tables for refunds'",),
)
@click.argument("text", type=params.TEXT_OR_STDIN)
def note(app: App, text: str) -> None:
    """Add a note to the history of the current job.

    Works only inside a run, in the agent or a program that it started. TEXT has at most
    5,000 characters; - reads it from stdin. People see it as the event `agent.note`.
    """
    _check_length(text)
    _send(app, "note", {"text": text})


@command(
    "progress",
    section="Programs",
    examples=("draftsman progress 12/40", "draftsman progress 30% 'migrating the tests'"),
)
@click.argument("part")
@click.argument("text", default="", type=params.TEXT)
def progress(app: App, part: str, text: str) -> None:
    """Report the progress of the run: 12/40 or 30%.

    Works only inside a run, in the agent or a program that it started. People see it as the event
    `agent.progress`; of several reports within five seconds the newest is stored.
    """
    match = PART.fullmatch(part.strip())
    done, total = (match[1] or match[3], match[2] or 100) if match else (1, 0)
    if int(done) > int(total) or int(total) == 0:
        raise UsageError(f"{part[:60]!r} is not a progress; use 12/40 or 30%")
    _check_length(text)
    payload = {"done": int(done), "total": int(total)}
    _send(app, "progress", payload | ({"text": text} if text else {}))


def _check_length(text: str) -> None:
    if len(text) > MAX_NOTE:
        raise UsageError(f"the text has {len(text):,} characters; the limit is {MAX_NOTE:,}")


def _send(app: App, kind: str, payload: dict[str, object]) -> None:
    run_socket.send("event", kind=kind, payload=payload)
    if app.json:
        app.out.document({"kind": f"agent.{kind}", "payload": payload})
