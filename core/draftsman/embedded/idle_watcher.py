"""Stops a server that nobody uses.

`python -I -S watch.py ORDER` is started beside the server, by whoever starts that, and outlives it.
Standard library only, because it stays as long as the server does and should cost little memory.
"""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, TypedDict


class WatchOptions(TypedDict):
    """What to watch and how; travels as JSON in the argument."""

    idle_stop: float
    """Seconds without a connection after which the server stops."""
    pid_file: str
    lock: str
    """Held by whoever starts or stops the server, touched by whoever was told that it runs."""
    guard: int
    """Inherited descriptor whose lock says that there is a watcher."""
    ask: tuple[str, ...]
    """Prints connections and sessions."""
    stop: tuple[str, ...]
    switch: dict[str, Any]
    """Arguments of `subprocess` that make `stop` run as the server's user."""
    env: dict[str, str]


def watch(order: WatchOptions) -> None:
    """Return when the server has gone, by itself or because it was idle."""
    interval = min(max(order["idle_stop"] / 20, 0.1), 15)
    known, used = "", time.time()
    while True:
        time.sleep(interval)
        running, seen = _alive(order), _activity(order)
        if running and (seen != known or not _idle(seen)):
            known, used = seen, time.time()
        if running and time.time() - max(used, _touched(order)) < order["idle_stop"]:
            continue
        with Path(order["lock"]).open() as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if _finished(order, known):
                os.close(order["guard"])  # while the lock is held: the next start needs a watcher
                return


def _finished(order: WatchOptions, known: str) -> bool:
    """Look again, now that nobody can start it or be told that it runs; stop it if still idle."""
    if not _alive(order):
        return True
    if time.time() - _touched(order) < order["idle_stop"] or _activity(order) != known:
        return False
    stop = subprocess.run(order["stop"], cwd="/", env=order["env"], **order["switch"])
    return stop.returncode == 0


def _activity(order: WatchOptions) -> str:
    """Return connections|sessions, or nothing when the server does not say: then it is busy."""
    asked = subprocess.run(order["ask"], stdout=subprocess.PIPE, cwd="/", env=order["env"])
    return asked.stdout.decode().strip()


def _idle(activity: str) -> bool:
    return activity.startswith("0|")


def _alive(order: WatchOptions) -> bool:
    try:
        os.kill(int(Path(order["pid_file"]).read_text().partition("\n")[0]), 0)
    except PermissionError:
        return True
    except (OSError, ValueError):
        return False
    return True


def _touched(order: WatchOptions) -> float:
    return Path(order["lock"]).stat().st_mtime


if __name__ == "__main__":
    if os.fork():
        os._exit(0)
    watch(json.loads(sys.argv[1]))
