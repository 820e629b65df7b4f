"""Options for the fields of a request, submitted now or later."""

from __future__ import annotations

from typing import Any, get_args

import click

from draftsman.errors import UsageError
from draftsman.jobs.job import Condition, OnFailure
from draftsman.jobs.requests.repeated_jobs import UniqueBy, UniqueStates
from draftsman_tui.cli.requests import type_options
from draftsman_tui.terminal import params

request_options = params.together(
    click.option("--type", type=params.JOB_TYPE, help="Job type; default: run_agent."),
    click.option("--agent", type=params.AGENT, help="Name of a configured agent."),
    click.option("--repo", type=params.REPO, help="Repository: path, URL or name."),
    click.option("--ref", type=params.TEXT, help="Branch, tag or commit to start from."),
    click.option("--mode", type=params.TEXT, help="fix, or investigate (changes nothing)."),
    click.option("--title", type=params.TEXT, help="Title. Default: the first line of the text."),
    click.option(
        "--subject", type=params.TEXT, help="Subject; joins the unfinished job of this subject."
    ),
    click.option("--queue", type=params.TEXT, help="Queue. Default: default."),
    click.option("--priority", type=params.PRIORITY, help="-1000 to 1000; higher runs first."),
    click.option("--payload", type=params.JSON, help="JSON object, @FILE, or @- for stdin."),
    click.option(
        "--override", type=params.PAIR, multiple=True, help="Job setting as key=value; repeatable."
    ),
    click.option(
        "--skill", type=params.TEXT, multiple=True, help="Skill for the agent; repeatable."
    ),
    click.option("--tag", type=params.TEXT, multiple=True, help="Tag; repeatable."),
    params.notify_option("Target of updates, or none"),
    click.option(
        "--max-attempts",
        type=click.IntRange(1, 100),
        metavar="N",
        help="Attempts: runs that may be lost, or end with an unexpected error.",
    ),
    click.option(
        "--max-retries",
        type=click.IntRange(0, 100),
        metavar="N",
        help="Retries after errors of the job itself, unexpected ones included.",
    ),
    click.option("--on-lost", help="If the worker dies: retry, resume, fail or new_job."),
)
"""Adds the options of each request to a command."""


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


submit_options = params.together(
    click.argument("text", nargs=-1, type=type_options.TEXT),
    request_options,
    click.option(
        "--param",
        "parameters",
        type=params.TEXT_PAIR,
        multiple=True,
        help="Parameter of a described type as key=value; repeatable.",
    ),
    click.option(
        "--key", type=params.TEXT, help="Idempotency key; the same key creates no new job."
    ),
    click.option(
        "--unique-for",
        type=params.DURATION,
        metavar="DURATION",
        help="Join an equal job of the last DURATION that is unfinished or has completed.",
    ),
    click.option(
        "--unique-by",
        type=click.Choice(get_args(UniqueBy)),
        help="Compare jobs by key, subject or arguments. Default: the first that the request has.",
    ),
    click.option(
        "--unique-states",
        type=click.Choice([str(states) for states in UniqueStates]),
        help="Statuses of an equal job. Default: unfinished, with --unique-for successful.",
    ),
    click.option("--replace", is_flag=True, help="Replace an equal job that has not started."),
    click.option(
        "--debounce",
        type=params.DURATION,
        metavar="DURATION",
        help="Start after this time without an equal request; the newest request wins.",
    ),
    click.option(
        "--debounce-limit",
        type=params.DURATION,
        metavar="DURATION",
        help="Start after this time in any case. Default: 10 times --debounce.",
    ),
    click.option(
        "--concurrency-key",
        type=params.TEXT,
        help="Of the jobs with the same key, one runs at a time, in queue order.",
    ),
    click.option(
        "--after",
        type=params.PARENTS,
        metavar="JOB,...",
        help="Start when these jobs have ended; cancel this job if one does not end as --on.",
    ),
    click.option(
        "--on",
        type=click.Choice([str(condition) for condition in Condition]),
        help="How the jobs of --after have to end. Default: success.",
    ),
    click.option("--group", type=params.TEXT, help="Add the job to this group."),
    click.option("--sequential", is_flag=True, help="Create the group: its jobs run one by one."),
    click.option("--parallel", is_flag=True, help="Create the group: its jobs run independently."),
    click.option(
        "--on-failure",
        type=click.Choice([str(policy) for policy in OnFailure]),
        help="If a job of the group fails: stop cancels those that have not started."
        " Default: stop.",
    ),
    click.option("--at", type=params.INSTANT, help="Start time, e.g. 2030-12-31T18:00."),
    click.option("--in", "delay", type=params.DURATION, help="Delay before the start, e.g. 10m."),
    click.option("--run-timeout", type=params.DURATION, help="Total run time limit, e.g. 10m."),
    click.option(
        "--unchecked",
        is_flag=True,
        help="Submit even if the chat or model is unknown to the configuration.",
    ),
    click.option("--timeout", type=params.DURATION, help="Stop waiting after this time."),
)
"""Adds the options of a request that is submitted now to a command."""


def submitted_fields(text: tuple[str, ...], options: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of the request that were given; raises UsageError."""
    if options["at"] is not None and options["delay"] is not None:
        raise UsageError("--at and --in cannot be combined")
    if options["on"] is not None and options["after"] is None:
        raise UsageError("--on requires --after")
    if empty := [name for name, value in options.items() if value == "" and name != "title"]:
        raise UsageError(f"--{empty[0].replace('_', '-')}: must not be empty; omit it")
    if (run_timeout := options.pop("run_timeout")) is not None:
        options["override"] = (*options["override"], ("timeout", run_timeout))
    unique = {
        "seconds": options.pop("unique_for"),
        "by": options.pop("unique_by"),
        "states": options.pop("unique_states"),
        "replace": options.pop("replace") or None,
        "debounce": options.pop("debounce"),
        "debounce_limit": options.pop("debounce_limit"),
    }
    options["unique"] = {name: value for name, value in unique.items() if value is not None}
    options["run_at"] = options.pop("at")
    options["group"] = _group_fields(options)
    return request_fields(text, options)


def _group_fields(options: dict[str, Any]) -> dict[str, str]:
    """Take the options of the group; return its fields; raises UsageError."""
    kinds = [kind for kind in ("sequential", "parallel") if options.pop(kind)]
    fields = {"name": options.pop("group"), "on_failure": options.pop("on_failure")}
    if fields["name"] is None:
        if kinds or fields["on_failure"]:
            raise UsageError("--sequential, --parallel and --on-failure require --group")
        return {}
    if len(kinds) > 1:
        raise UsageError("--sequential and --parallel cannot be combined")
    if fields["on_failure"] and not kinds:
        raise UsageError("--on-failure requires --sequential or --parallel")
    fields["kind"] = kinds[0] if kinds else None
    return {name: value for name, value in fields.items() if value is not None}
