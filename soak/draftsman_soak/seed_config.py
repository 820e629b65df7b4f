"""What every seed has in common: the people, the times, the configuration."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from draftsman_soak import handlers

LEASE: Final = 5.0
"""Seconds without a heartbeat after which a run is lost: short, so that a soak sees many."""
GRACE: Final = 90.0
"""Seconds after the last fault and the last answer until a job that has not ended is stuck."""
LOSSES: Final = 20
"""Lost workers that a job survives: a soak kills the same job's more often than three times."""
PREFIX: Final = "soak:"
PEOPLE: Final = ("anna", "ben", "cleo", "dirk")
"""Who answers and approves; the first also asks for the jobs, and approves none."""


def configuration(data_dir: Path, *, git: bool) -> str:
    """Return the file that every process of a seed reads: ordinary settings, short times."""
    lines = [
        f"data_dir = {json.dumps(str(data_dir))}",
        *("[embedded]", "idle_stop = 60"),
        *("[database]", "connect_timeout = 5"),
        *("[worker]", "slots = 4", "poll = 0.2", "heartbeat = 1", f"lease = {LEASE}"),
        *("drain = 3", "abort = 2"),
        *("[sweeps]", "interval = 1", "lease = 2"),
        "[handlers]",
        *(f'"{PREFIX}{name}" = "{handlers.MODULE}:{name}"' for name in handlers.TYPES),
    ]
    for name in handlers.TYPES:
        lines += [f'[types."{PREFIX}{name}"]', f"max_attempts = {LOSSES}", 'on_lost = "resume"']
        lines += ["base_delay = 0.2", "max_delay = 1"]
        lines += ["max_retries = 1"] if name == "doomed" else []
    if git:
        lines += [
            "[types.run_agent]",
            f"max_attempts = {LOSSES}",
            "base_delay = 0.5",
            "max_delay = 2",
        ]
    for name in PEOPLE:
        lines += [f"[people.{name}]", f'login = "{name}"']
        lines += ['roles = ["invoker", "responder", "approver", "operator"]']
    lines += ["[groups]", f"crowd = {json.dumps(PEOPLE[1:])}"]
    return "\n".join(lines) + "\n"
