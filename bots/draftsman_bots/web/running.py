"""The address of the inbox that runs on this machine, for the links that other processes make.

Without `url` only this machine reaches an inbox, whose port may be an option of its command: the
address is recorded in the data directory, for each database, while the inbox runs.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from draftsman.database.session_settings import database_key
from draftsman.processes import host

if TYPE_CHECKING:
    from draftsman.settings import Settings


@contextmanager
def recorded(settings: Settings, url: str) -> Iterator[None]:
    """Record the address of this process; a directory that cannot be written has no record."""
    path = _path(settings)
    pid = os.getpid()
    record = {
        "url": url,
        "host_id": host.identity(),
        "pid": pid,
        "pid_started": host.process_start_time(pid) or 0,
    }
    part = path.with_name(f".{path.name}.{pid}")
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        part.write_text(json.dumps(record))
        part.replace(path)
    try:
        yield
    finally:
        if (_read(path) or {}).get("pid") == pid:  # else of an inbox that started later
            path.unlink(missing_ok=True)


def running_url(settings: Settings) -> str | None:
    """Return the address of the inbox that runs on this machine; None without one."""
    record = _read(_path(settings))
    if record is None:
        return None
    state = host.liveness(record["host_id"], record["pid"], record["pid_started"])
    return str(record["url"]) if state is host.Liveness.ALIVE else None


def _path(settings: Settings) -> Path:
    url = settings.database_url
    key = "embedded" if url is None else database_key(url.get_secret_value())
    return settings.data_dir / f"web-inbox-{key}.json"


def _read(path: Path) -> dict[str, Any] | None:
    try:
        record: dict[str, Any] = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    return record
