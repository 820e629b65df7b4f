"""Activity as lines of text, for terminals and chat. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from draftsman.agent_runs.activity.stream import (
    Activity,
    ActivityKind,
    ActivityRow,
    ActivityState,
    plan_progress,
)

MARKS: Final[Mapping[str, str]] = {
    ActivityState.PENDING: "waits",
    ActivityState.RUNNING: "runs",
    ActivityState.COMPLETED: "done",
    ActivityState.FAILED: "failed",
}
"""State of a call of a tool, as a short word."""


def activity_text(row: Activity | ActivityRow) -> str:
    """Return a row as text: `[done] execute: npm test`, `[plan] 3 of 7 steps: write tests`."""
    match row.kind:
        case ActivityKind.MESSAGE | ActivityKind.THOUGHT:
            return row.text
        case ActivityKind.TOOL:
            tool = row.detail.get("tool")
            name = f"{tool}: " if tool and tool != row.text else ""
            return f"[{MARKS.get(str(row.state), row.state or 'runs')}] {name}{row.text}"
        case ActivityKind.FILE:
            return f"[{row.state or 'changed'}] {row.text}"
        case ActivityKind.PLAN:
            return f"[plan] {plan_text(row.detail.get('entries'))}"
        case ActivityKind.USAGE:
            return f"[usage] {usage_text(row.detail)}"
        case _:
            return f"[{row.kind}] {row.text}"


def plan_text(entries: Any) -> str:
    """Return the progress of a plan and its current step: `3 of 7 steps: write tests`."""
    done, steps = plan_progress(entries)
    current = next((item for item in entries or () if item.get("state") == "running"), None)
    noun = "step" if steps == 1 else "steps"
    progress = f"{done} of {steps} {noun}"
    return f"{progress}: {current.get('text')}" if current else progress


def usage_text(counts: Mapping[str, Any]) -> str:
    """Return the usage of a run so far: `12,345 tokens in, 678 out, $0.12`."""
    parts = [
        f"{counts['input_tokens']:,} tokens in" if counts.get("input_tokens") else "",
        f"{counts['output_tokens']:,} tokens out" if counts.get("output_tokens") else "",
        f"${counts['cost_usd']:.2f}" if counts.get("cost_usd") else "",
    ]
    return ", ".join(part for part in parts if part) or "no tokens"
