"""Options for the fields of a request that is stored and submitted later."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import click

from draftsman_tui.terminal import params
from draftsman_tui.terminal.target_option import TargetOption

Function = Callable[..., Any]
FAILURE_OPTIONS: Final = (
    click.option(
        "--max-attempts",
        type=int,
        help="Runs that may be lost, or fail by the infrastructure or any exception.",
    ),
    click.option(
        "--max-retries",
        type=int,
        help="Retries after the job's own errors, any exception included.",
    ),
    click.option("--on-lost", help="If the worker dies: retry, resume, fail or new_job."),
)
"""Options for failed and lost runs."""
_OPTIONS: Final = (
    click.option("--type", help="Job type; default: run_agent."),
    click.option("--agent", type=params.AGENT, help="Name of a configured agent."),
    click.option("--repo", type=params.REPO, help="Repository: path, URL or name."),
    click.option("--ref", type=params.TEXT, help="Branch, tag or commit to start from."),
    click.option("--mode", type=params.TEXT, help="fix, or investigate (changes nothing)."),
    click.option("--title", type=params.TEXT, help="Title. Default: the first line of the text."),
    click.option(
        "--subject", type=params.TEXT, help="Subject; joins the unfinished job of this subject."
    ),
    click.option("--queue", type=params.TEXT, help="Queue. Default: default."),
    click.option("--priority", type=int, help="-1000 to 1000; higher runs first."),
    click.option("--payload", type=params.JSON, help="JSON object, @FILE, or @- for stdin."),
    click.option(
        "--override", type=params.PAIR, multiple=True, help="Job setting key=value; repeatable."
    ),
    click.option("--skill", type=params.TEXT, multiple=True, help="Skill; repeatable."),
    click.option("--tag", type=params.TEXT, multiple=True, help="Tag; repeatable."),
    click.option(
        "--notify",
        type=params.TEXT,
        multiple=True,
        metavar="TARGET",
        cls=TargetOption,
        help="Target of updates, or none; repeatable",
    ),
    *FAILURE_OPTIONS,
)


def request_options(function: Function) -> Function:
    """Add the options of a request to a command."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def request_fields(text: tuple[str, ...], options: dict[str, Any]) -> dict[str, Any]:
    """Return the fields that were given, by their names in a request."""
    renamed = {
        "text": params.read_stdin() if text == ("-",) else " ".join(text),
        "subject_key": options.pop("subject"),
        "skills": options.pop("skill"),
        "tags": options.pop("tag"),
        "overrides": dict(options.pop("override")),
    }
    fields = options | renamed
    return {name: value for name, value in fields.items() if value not in (None, "", (), {})}
