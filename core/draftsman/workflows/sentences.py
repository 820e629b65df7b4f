"""Sentences of the database about dependencies, groups and spawned jobs."""

from __future__ import annotations

from typing import Final

SENTENCES: Final = {
    "completed": "D-{job} completed",
    "failed": "D-{job} failed",
    "dead_letter": "D-{job} is a dead letter",
    "expired": "D-{job} expired",
    "canceled": "D-{job} was canceled",
    "group_canceled": "the group {group} was canceled",
    "not_new": "D-{job} is not a new job that waits for parents",
    "no_parent": "there is no job D-{job} to wait for",
    "waits_for_none": "D-{job} waits for no other job",
    "create_group": "{role} may not create a group as {actor}",
    "only_new": "only new jobs that wait for parents can be added",
    "group_of_others": (
        "{person} may not add jobs to the group {group}, which has jobs of others; its"
        " creator or an operator can, or use another group"
    ),
    "not_spawned": "D-{job} is not running, or did not spawn D-{spawned}",
    "most_spawned": (
        "D-{job} has submitted {most} jobs, the most that an agent may; finish the work in this job"
    ),
    "parents_kept": "jobs keep their parents",
    "group_kept": "jobs keep their group",
}
