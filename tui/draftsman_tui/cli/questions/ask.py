"""The `ask` and `approve-action` commands: questions of programs to people."""

from __future__ import annotations

from typing import Any, Final

import click

from draftsman.actions.requests import submit
from draftsman.errors import AnswerTimeout, DraftsmanError, UsageError
from draftsman.ids import JobRef
from draftsman.questions.question import derived_key
from draftsman_tui.cli.app import App, command
from draftsman_tui.common import run_socket
from draftsman_tui.terminal import params

OPEN: Final = (
    "no answer yet; the question stays open, the run parks, and the same command of the next run"
    " gets the answer"
)

common_options = params.together(
    click.option(
        "--key",
        type=params.TEXT,
        help="Inside a run: key of the question in its job, by default derived from its text; "
        "outside: idempotency key, with which the same command waits for the same question.",
    ),
    click.option(
        "--expires-in", type=params.DURATION, help="Time until the question expires, e.g. 2h."
    ),
    click.option(
        "--wait", type=params.DURATION, help="Stop waiting after this time; the question is kept."
    ),
    click.option(
        "--critical",
        is_flag=True,
        help="Interrupt people in their quiet hours, and page them; outside a run only.",
    ),
    params.notify_option("Target of the question"),
)
"""Adds the options of both commands."""


@command(
    "ask",
    section="Programs",
    examples=(
        "draftsman ask 'Deploy to production?' --choice yes --choice no",
        "draftsman ask 'Which name should the option have?' --wait 10m --notify slack:C0123",
        "draftsman ask --continue D-142",
    ),
    does=(submit,),
)
@click.argument("text", default="", type=params.TEXT)
@click.option("--choice", "choices", multiple=True, type=params.TEXT, help="A choice; repeatable.")
@click.option("--freeform", is_flag=True, help="Allow free text besides the choices.")
@click.option("--context", type=params.TEXT, help="Background information for the answer.")
@click.option("--default", type=params.TEXT, help="The answer if the question expires.")
@common_options
@click.option(
    "--continue",
    "continued",
    type=params.JOB,
    metavar="JOB",
    help="Wait for the answer to a question that was asked before, outside a run.",
)
async def ask(
    app: App,
    text: str,
    choices: tuple[str, ...],
    freeform: bool,
    continued: JobRef | None,
    **options: Any,
) -> None:
    """Ask a question, and print the answer.

    Outside a run, the question is a job of the type ask_people: people are asked by every
    channel of --notify, and Ctrl-C leaves the question open.

    Inside a run, in the agent or a program that it started, the question belongs to the run's job.
    If the answer is known, it is printed. Otherwise the run parks: this command exits with 5, and
    the agent has to exit. After the answer another run starts, in which the same command prints it.
    With --wait the agent keeps running meanwhile, for ask_grace of [questions] at most.

    Exits with 5 without an answer, also if the question has expired, and 1 if it is refused.
    """
    if continued is not None:
        if text or run_socket.path():
            raise UsageError("--continue takes no TEXT, and works outside a run only")
        from draftsman_tui.cli.questions.ask_team import continue_asking

        _print_answer(app, await continue_asking(app, continued, options["wait"]))
        return
    if not text.strip():
        raise UsageError("TEXT is required, e.g. draftsman ask 'Which name?'")
    message = {"choices": list(choices), "freeform": freeform or not choices}
    await _ask(app, "ask", {"text": text} | message, (text, *choices), options)


@command(
    "approve-action",
    section="Programs",
    examples=(
        "draftsman approve-action 'Push the image?' --action '{\"push\": \"registry/app:1.2\"}'",
    ),
    does=(submit,),
)
@click.argument("text", type=params.TEXT)
@click.option(
    "--action",
    type=params.json_param("--action"),
    metavar="JSON",
    help="The exact action, as an object or @FILE; another action needs another approval.",
)
@click.option("--context", type=params.TEXT, help="Background information for the decision.")
@common_options
@click.option(
    "--on-deny",
    type=click.Choice(["continue", "fail"]),
    help="Inside a run, on a denial: exit with 1, or end the job as failed. Default: continue.",
)
async def approve_action(
    app: App, text: str, action: dict[str, Any] | None, on_deny: str | None, **options: Any
) -> None:
    """Ask for the approval of an action.

    Works outside and inside a run, as `ask` does. People see the action, and in a run the
    changes so far; the approval is valid for these alone.

    Exits with 0 if it is approved, 1 if it is denied, and 5 without a decision.
    """
    message = {"text": text, "action": action}
    if run_socket.path():
        message["on_deny"] = on_deny or "continue"
    elif on_deny is not None:
        raise UsageError("--on-deny works only inside a run")
    await _ask(app, "approve", message, (text,), options)


async def _ask(
    app: App, kind: str, message: dict[str, Any], content: tuple[str, ...], options: dict[str, Any]
) -> None:
    """Ask inside or outside of the run, and print the answer; `content` names the question."""
    key = options.pop("key")
    wait = options.pop("wait")
    notify = list(options.pop("notify"))
    message = {
        name: value for name, value in (message | options).items() if value not in (None, [])
    }
    if not message["critical"]:
        del message["critical"]
    if run_socket.path():
        if message.get("critical"):
            raise UsageError("--critical works only outside a run: an agent cannot page people")
        if notify:
            raise UsageError("--notify works only outside a run: the job has its targets")
        if wait is not None:
            if kind == "approve":
                text = "--wait does not work for an approval inside a run: the run parks"
                raise UsageError(text)
            message["grace"] = wait
        key = key or derived_key(kind, content)
        _print_answer(app, run_socket.send(kind, key=key, **message))
        return
    from draftsman_tui.cli.questions.ask_team import ask_team

    payload = message | ({"kind": "approval"} if kind == "approve" else {})
    _print_answer(app, await ask_team(app, payload, wait=wait, key=key, notify=notify))


def _print_answer(app: App, reply: dict[str, Any]) -> None:
    """Print an answer; raises AnswerTimeout without, and DraftsmanError for a denial."""
    outcome = "open" if reply.get("type") == "park" else str(reply["outcome"])
    fields = ("job", "key", "value", "text", "by", "at", "reason")
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
