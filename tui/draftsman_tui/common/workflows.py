"""Parents and groups of jobs as text and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from draftsman.text import humanize
from draftsman.workflows.dependencies import Parent
from draftsman.workflows.groups import JobGroup

MAX_PARENTS: Final = 8
"""Maximum number of parents named on a line."""


def parents_text(parents: Sequence[Parent]) -> str:
    """List the parents of a job with their statuses."""
    names = [f"{parent.name} {humanize(parent.status)}" for parent in parents[:MAX_PARENTS]]
    if len(parents) > MAX_PARENTS:
        names.append(f"{len(parents) - MAX_PARENTS:,} more")
    conditions = {str(parent.condition) for parent in parents} - {"success"}
    on = f" (on {', '.join(sorted(conditions))})" if conditions else ""
    return ", ".join(names) + on


def parents_data(parents: Sequence[Parent]) -> list[dict[str, Any]]:
    """Return the JSON objects of parents, without their results."""
    return [
        {
            "number": parent.number,
            "condition": parent.condition,
            "met": parent.met,
            "status": parent.status,
        }
        for parent in parents
    ]


def group_data(group: JobGroup) -> dict[str, Any]:
    """Return the JSON object of the group of a job."""
    names = ("name", "kind", "on_failure", "state", "progress")
    return {name: getattr(group, name) for name in names}
