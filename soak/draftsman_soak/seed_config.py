"""Configuration shared by all seeds: people, timeouts and settings."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from draftsman_soak import handlers

LEASE: Final = 5.0
"""Seconds of a run's lease; short, so that a soak has many lost runs."""
GRACE: Final = 90.0
"""Seconds after the last fault and answer until a live job counts as stuck."""
LOSSES: Final = 20
"""Maximum lost runs of a job; a soak kills the worker of the same job more than three times."""
PREFIX: Final = "soak:"
PEOPLE: Final = ("anna", "ben", "cleo", "dirk")
"""People who answer and approve; the first person submits the jobs and approves none."""
KEYS: Final = 3
"""Concurrency keys that jobs of the load share."""


def configuration(data_dir: Path, *, git: bool, types: Sequence[str]) -> str:
    """Return the configuration file of workers that handle `types`.

    These are ordinary settings with short timeouts. Few places and keys let jobs wait for others.
    """
    lines = [
        f"data_dir = {json.dumps(str(data_dir))}",
        *("[embedded]", "idle_timeout = 60"),
        *("[database]", "connect_timeout = 5"),
        *("[worker]", "slots = 4", "poll = 0.2", "heartbeat = 1", f"lease = {LEASE}"),
        *("drain = 3", "abort = 2"),
        *("[sweeps]", "interval = 1", "lease = 2"),
        "[handlers]",
        *(f'"{PREFIX}{name}" = "{handlers.MODULE}:{name}"' for name in types),
        *(f'[limits.type."{PREFIX}steps"]', "running = 4"),
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
