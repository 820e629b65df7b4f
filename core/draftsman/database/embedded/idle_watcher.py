"""Watcher process that stops an idle server.

`python -I -S idle_watcher.py ORDER` is started with the server and outlives the process that starts
it. It uses the standard library only, to need little memory.
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
    """Options of the watcher, a JSON argument."""

    idle_timeout: float
    """Seconds without a connection after which the server stops."""
    pid_file: str
    lock: str
    """Lock file, held during a start or stop and touched by `ensure`."""
    guard: int
    """Inherited descriptor of the watcher's lock."""
    ask: tuple[str, ...]
    """Command that prints the number of connections and sessions."""
    stop: tuple[str, ...]
    switch: dict[str, Any]
    """Arguments of `subprocess` to run `stop` as the server's user."""
    env: dict[str, str]


def watch(order: WatchOptions) -> None:
    """Stop the server when it is idle; return when it has stopped."""
    interval = min(max(order["idle_timeout"] / 20, 0.1), 15)
    last_activity = ""
    last_touched = _touched(order)
    last_used = time.monotonic()
    while True:
        time.sleep(interval)
        running = _alive(order)
        activity = _activity(order)
        touched = _touched(order)
        is_used = activity != last_activity or touched != last_touched or not _idle(activity)
        if running and is_used:
            last_activity = activity
            last_touched = touched
            last_used = time.monotonic()
        if running and time.monotonic() - last_used < order["idle_timeout"]:
            continue
        with Path(order["lock"]).open() as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if _finished(order, last_activity, last_touched):
                os.close(order["guard"])  # under the lock, so that the next start gets a watcher
                return


def _finished(order: WatchOptions, last_activity: str, last_touched: float) -> bool:
    """Check again under the lock; stop the server if it is still idle."""
    if not _alive(order):
        return True
    if _touched(order) != last_touched or _activity(order) != last_activity:
        return False
    stop = subprocess.run(order["stop"], cwd="/", env=order["env"], **order["switch"])
    return stop.returncode == 0


def _activity(order: WatchOptions) -> str:
    """Return `connections|sessions`, or "" if the server does not respond and counts as busy."""
    done = subprocess.run(order["ask"], stdout=subprocess.PIPE, cwd="/", env=order["env"])
    return done.stdout.decode().strip()


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
