"""The `hook` command group: permission requests of coding agents, answered by the team."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any, Final

import click

from draftsman.actions.jobs import cancel
from draftsman.actions.requests import submit
from draftsman.errors import DraftsmanError, Refused, UsageError
from draftsman.formats.invisible import escape_invisible
from draftsman.questions.permission_rules.permission_rule import ALLOWING, REFUSING
from draftsman_tui.cli.app import App, command_group
from draftsman_tui.cli.perform import call_of
from draftsman_tui.cli.questions.ask_team import answer_of, submit_question, why_unanswered
from draftsman_tui.common import run_socket
from draftsman_tui.terminal import params

ALLOW: Final = "allow once"
DENY: Final = "deny"
CHOICES: Final = (
    {"value": ALLOW, "description": ALLOWING[ALLOW]},
    {"value": DENY, "description": REFUSING[DENY]},
)
DEFAULT_WAIT: Final = 50.0
"""Seconds; a client ends a hook after a minute by default."""
EXPIRY_MARGIN: Final = 30.0
"""Seconds after which the question of a hook that was killed expires."""
MAX_INPUT: Final = 1 << 20
"""Maximum bytes of a request."""
MAX_CALL: Final = 19_000
"""Maximum characters of a call: people have to see all of it."""
SHOWN: Final = 2500
"""Maximum characters of a call in the text of its question."""


@command_group("hook", section="Programs", examples=("draftsman hook claude --notify slack:C0123",))
def hook() -> None:
    """Let the team decide the tool calls of coding agents.

    The agents run outside of draftsman, in an editor or a terminal.
    """


@hook.subcommand(
    "claude",
    examples=(
        "draftsman hook claude --notify slack:C0123",
        "draftsman hook claude --wait 10m --without-answer deny",
    ),
    does=(submit,),
)
@click.option(
    "--wait",
    type=params.DURATION,
    default=DEFAULT_WAIT,
    help="Time to wait; shorter than the timeout of the hook. Default: 50s.",
)
@click.option(
    "--without-answer",
    type=click.Choice(["ask", "deny"]),
    default="ask",
    help="Without an answer, ask the person at the terminal, or deny. Default: ask.",
)
@params.notify_option("Target of the question")
async def claude(app: App, wait: float, without_answer: str, notify: tuple[str, ...]) -> None:
    """PreToolUse hook of Claude Code: let people decide a tool call.

    Claude Code writes the call to standard input; the decision goes to standard output: allow,
    deny with a reason, or without an answer in time what --without-answer says. The question is
    withdrawn then, so that a late answer allows nothing.

    Exits with 2, which blocks the call, if the request cannot be read.
    """
    if run_socket.path():
        raise UsageError("hook works outside a run only; see: draftsman help --page coding-agents")
    call = _read_call()
    try:
        decision, reason = await _decide(app, call, wait, list(notify))
    except DraftsmanError as error:
        decision = None
        reason = str(error)
    output = {
        "hookEventName": "PreToolUse",
        "permissionDecision": decision or without_answer,
        "permissionDecisionReason": f"draftsman: {reason}",
    }
    app.out.write(json.dumps({"hookSpecificOutput": output}) + "\n")


async def _decide(
    app: App, call: dict[str, Any], wait: float, notify: list[str]
) -> tuple[str | None, str]:
    """Return the decision of the team, None without an answer, and its reason."""
    payload = _question(call) | {"expires_in": wait + EXPIRY_MARGIN}
    async with app.runtime() as rt:
        job = await submit_question(app, rt, payload, notify=notify)
        try:
            async with asyncio.timeout(wait):
                await rt.read_model.wait(job.number)
        except TimeoutError:
            try:
                reason = await why_unanswered(rt, job.number, wait)
                await cancel(await call_of(app, rt), job.number, reason)
            except Refused:  # it has ended meanwhile
                pass
            else:
                return None, f"{job.name}: {reason}"
        answer = answer_of(await rt.read_model.job(job.number))
    by = ", ".join(answer.get("by") or ())
    if answer.get("value") == ALLOW:
        return "allow", f"allowed by {by} in {job.name}"
    comment = answer.get("text")
    return "deny", f"denied by {by} in {job.name}{f': {comment}' if comment else ''}"


def _read_call() -> dict[str, Any]:
    """Return the request of the hook; raises UsageError."""
    data = sys.stdin.buffer.read(MAX_INPUT + 1)
    if len(data) > MAX_INPUT:
        raise UsageError(f"the request has more than {MAX_INPUT:,} bytes")
    try:
        call = json.loads(data)
    except (ValueError, RecursionError):
        call = None
    if not isinstance(call, dict) or not isinstance(call.get("tool_name"), str):
        raise UsageError("expects the JSON of the hook PreToolUse on standard input")
    if call.get("hook_event_name", "PreToolUse") != "PreToolUse":
        raise UsageError("works as the hook PreToolUse only")
    return call


def _question(call: dict[str, Any]) -> dict[str, Any]:
    """Return the question about a call; raises Refused for a call that is too long to be read."""
    tool_input = call.get("tool_input")
    fields = tool_input if isinstance(tool_input, dict) else {"input": tool_input}
    command = fields.get("command")
    if call["tool_name"] == "Bash" and isinstance(command, str):
        verb = "run a command"
        body = f"$ {command}"
        fields = {name: value for name, value in fields.items() if name != "command"}
    else:
        verb = f"use the tool {call['tool_name'][:100]}"
        body = ""
    lines = [
        f"{name}: {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"
        for name, value in fields.items()
    ]
    call_text = _visible("\n".join(filter(None, [body, *lines])))
    if len(call_text) > MAX_CALL:
        raise Refused(
            f"the call has {len(call_text):,} characters, which is too long for a question"
        )
    fits = len(call_text) <= SHOWN
    context = f"In {_visible(str(call.get('cwd')))[:500]}"
    return {
        "text": f"Allow Claude Code to {_visible(verb)}?\n\n{call_text[:SHOWN]}"
        + ("" if fits else "\n… the whole call is the context"),
        "choices": list(CHOICES),
        "freeform": True,
        "context": context if fits else f"{context}:\n\n{call_text}",
    }


def _visible(text: str) -> str:
    """Return the text that a person decides on."""
    return escape_invisible(text, strict=True)
