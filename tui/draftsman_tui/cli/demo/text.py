"""The output of the `demo` command: its steps, the result and the timeline."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from draftsman.ids import actor_name
from draftsman_tui.terminal.output import line, one_line, styled
from draftsman_tui.terminal.value_format import network_text

if TYPE_CHECKING:
    from draftsman.events.event import Event
    from draftsman.jobs.job import Job


def _validation(payload: dict[str, Any]) -> str:
    outcome = "passed" if payload.get("passed") else "failed"
    return f"{payload['name']} {outcome}: {payload.get('summary', '')}"


def _sandbox(payload: dict[str, Any]) -> str:
    network = network_text(payload.get("network"), "network open", "no network")
    weaker = "; weaker than bwrap: see draftsman doctor"
    warning = weaker if payload.get("mode") == "landlock" else ""
    return f"{payload.get('mode')}, {network}{warning}"


STEPS: Final[dict[str, tuple[str, str, Callable[[dict[str, Any]], str]]]] = {
    "job_created": ("queued", "cyan", lambda _: "waiting for a worker"),
    "job_started": ("run", "cyan", lambda _: "started"),
    "repo_resolved": ("clone", "cyan", lambda payload: f"at {payload['base_sha'][:12]}"),
    "sandbox_applied": ("sandbox", "cyan", _sandbox),
    "iteration_started": (
        "agent",
        "cyan",
        lambda payload: f"{payload['agent']}, iteration {payload['iteration']}",
    ),
    "validation_ran": ("validate", "cyan", _validation),
    "agent.validation_ran": ("validate", "cyan", _validation),
    "agent.command_executed": (
        "fix",
        "cyan",
        lambda payload: f"{payload['name']}: {payload.get('summary', '')}",
    ),
    "agent.permission": ("decision", "green", lambda payload: str(payload.get("decision"))),
    "needs_input": ("parked", "yellow", lambda _: "waiting for an answer"),
    "job_resumed": ("resumed", "green", lambda payload: f"by {', '.join(payload.get('by', ()))}"),
    "job_released": ("rescued", "green", lambda _: "continues from its last checkpoint"),
    "branch_published": (
        "branch",
        "green",
        lambda payload: f"{payload['branch']} at {payload['commit'][:12]}",
    ),
    "job_completed": ("completed", "bold green", lambda _: ""),
}
"""Label, style and text of each event kind that is a step of the demo."""


def step(event: Event) -> tuple[str, str, str]:
    """Return label, text and style of an event."""
    if event.kind in STEPS:
        label, style, text = STEPS[event.kind]
        return label, text(event.payload), style
    detail = event.payload.get("error") or event.payload.get("reason") or ""
    return event.kind.removeprefix("job_")[:10], one_line(str(detail)), "red"


def summary(job: Job) -> list[Any]:
    """Return the lines of the job's result."""
    result = job.result or {}
    lines: list[Any] = ["", styled(f"{job.name} is {job.status}", "bold")]
    if job.last_error and job.status != "completed":
        lines.append(styled(job.last_error, "red"))
    if result.get("summary"):
        lines.append(str(result["summary"]))
    return [*lines, ""]


def next_steps(job: Job, repo: Path, config: Path | None = None) -> list[str]:
    """Return the commands that show more of the job."""
    branch = (job.result or {}).get("branch")
    lines = ["", "Next steps:"]
    if branch:
        lines.append(f"  git -C {repo} log --stat -1 {branch}")
    # `make demo` calls draftsman by its path, and the printed commands must work when copied
    program = sys.argv[0] if sys.argv[0].endswith("/draftsman") else "draftsman"
    command = "draftsman" if shutil.which("draftsman") else program
    if config is not None:
        command += f" --config {shlex.quote(str(config))}"
    verbs = ("show", "diff") if branch else ("show",)
    return [*lines, *(f"  {command} {verb} {job.name}" for verb in verbs)]


def timeline(events: Sequence[Event]) -> list[Any]:
    """Render the status changes of the job with time and actor."""
    moves = [event for event in events if event.to_status is not None]
    rows = [styled("timeline", "bold")]
    for event in moves:
        elapsed = f"{(event.created_at - moves[0].created_at).total_seconds():8.2f} s  "
        by = actor_name(event.actor)
        rows.append(line(styled(elapsed, "dim"), f"{event.to_status:<20} ", styled(by, "dim")))
    return rows
