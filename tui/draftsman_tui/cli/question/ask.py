"""The `ask` and `approve-action` commands: questions of programs to people."""

from __future__ import annotations

import hashlib
import json
from typing import Any, Final

import click

from draftsman.errors import AnswerTimeout, DraftsmanError
from draftsman_tui.cli.app import App, command
from draftsman_tui.common import params, run_socket

OPEN: Final = (
    "no answer yet; the question stays open, the run parks, and the same command of the next run"
    " gets the answer"
)


@command(
    "ask",
    examples=(
        "draftsman ask 'Deploy to production?' --choice yes --choice no",
        "draftsman ask 'Which name should the option have?'",
    ),
)
@click.argument("text", type=params.TEXT)
@click.option("--choice", "choices", multiple=True, type=params.TEXT, help="A choice; repeatable.")
@click.option("--freeform", is_flag=True, help="Allow free text besides the choices.")
@click.option("--context", type=params.TEXT, help="Background information for the answer.")
@click.option(
    "--key",
    type=params.TEXT,
    help="Key of the question within its job. Default: derived from text and choices.",
)
@click.option("--default", type=params.TEXT, help="The answer if the question expires.")
@click.option(
    "--expires-in", type=params.DURATION, help="Time until the question expires, e.g. 2h."
)
def ask(
    app: App,
    text: str,
    choices: tuple[str, ...],
    freeform: bool,
    context: str | None,
    key: str | None,
    default: str | None,
    expires_in: float | None,
) -> None:
    """Ask a question, and print the answer.

    Works inside of a run, in any program below the agent: the question is that of the run's job. If
    the answer is known, it is printed. Otherwise the run parks: this command exits with 5, and the
    agent has to exit. After the answer another run starts, in which the same command prints it.

    Exits with 5 without an answer, also if the question has expired, and 1 if it is refused.
    """
    message = {
        "key": key or derived_key("ask", text, choices),
        "text": text,
        "choices": list(choices),
        "freeform": freeform or not choices,
        "context": context,
        "default": default,
        "expires_in": expires_in,
    }
    _print_answer(app, run_socket.send("ask", **_given(message)))


@command(
    "approve-action",
    examples=(
        "draftsman approve-action 'Push the image?' --action '{\"push\": \"registry/app:1.2\"}'",
    ),
)
@click.argument("text", type=params.TEXT)
@click.option(
    "--action",
    type=params.JsonParam("--action"),
    metavar="JSON",
    help="The exact action, as an object or @FILE; another action needs another approval.",
)
@click.option("--context", type=params.TEXT, help="Background information for the decision.")
@click.option(
    "--key",
    type=params.TEXT,
    help="Key of the approval within its job. Default: derived from the text.",
)
@click.option(
    "--on-deny",
    type=click.Choice(["continue", "fail"]),
    default="continue",
    help="On a denial: exit with 1, or end the job as failed. Default: continue.",
)
@click.option(
    "--expires-in", type=params.DURATION, help="Time until the approval expires, e.g. 2h."
)
def approve_action(
    app: App,
    text: str,
    action: dict[str, Any] | None,
    context: str | None,
    key: str | None,
    on_deny: str,
    expires_in: float | None,
) -> None:
    """Ask for the approval of an action.

    Works inside of a run, as `ask` does. People see the action, and in a repository the changes so
    far; the approval is valid for these alone.

    Exits with 0 if it is approved, 1 if it is denied, and 5 without a decision.
    """
    message = {
        "key": key or derived_key("approve", text),
        "text": text,
        "action": action,
        "context": context,
        "on_deny": on_deny,
        "expires_in": expires_in,
    }
    _print_answer(app, run_socket.send("approve", **_given(message)))


def derived_key(kind: str, text: str, choices: tuple[str, ...] = ()) -> str:
    """Return a key that is the same for the same question."""
    content = json.dumps([text, *choices]).encode()
    return f"{kind}-{hashlib.sha256(content).hexdigest()[:16]}"


def _given(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _print_answer(app: App, reply: dict[str, Any]) -> None:
    """Print an answer; raises AnswerTimeout without, and DraftsmanError for a denial."""
    outcome = "open" if reply["type"] == "park" else str(reply["outcome"])
    fields = ("key", "value", "text", "by", "at", "reason")
    answer = {"outcome": outcome} | {name: reply.get(name) for name in fields}
    if app.json:
        app.out.document(answer)
    if outcome == "open":
        raise AnswerTimeout(OPEN)
    if outcome == "expired":
        raise AnswerTimeout("the question expired without an answer")
    by = f" by {', '.join(answer['by'])}" if answer["by"] else ""
    if outcome == "denied":
        reason = f": {answer['reason']}" if answer["reason"] else ""
        raise DraftsmanError(f"denied{by}{reason}")
    if app.json:
        return
    if outcome == "approved":
        app.out.info(f"approved{by}")
    else:
        app.out.write(f"{answer['text'] if answer['value'] is None else answer['value']}\n")
