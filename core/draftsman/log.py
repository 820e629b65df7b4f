"""Logging: one line per record, with known fields and without secrets.

    2026-01-02T03:04:05.678Z info draftsman.worker.worker claimed job=D-142 run=2 queue=default

or, with the format `json`, a JSON object:

    {"time": "2026-01-02T03:04:05.678Z", "level": "info", "logger": "draftsman.worker.worker",
     "message": "claimed", "job": "D-142", "run": 2, "worker": "6d0f9a1c", "queue": "default"}

`setup` configures the standard library's logging once per process; all other modules use
`logging.getLogger(__name__)` and `extra=keys(job=…)`. An exception becomes `error="Type: text"`;
its traceback appears at level debug only. A log that cannot be written never stops the process.
"""

from __future__ import annotations

import errno
import json
import logging
import math
import os
import re
import sys
import time
import traceback
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, TextIO, TypedDict, Unpack

from draftsman.formats.invisible import escape_invisible
from draftsman.formats.secret_formats import HIDDEN, hide_secrets
from draftsman.tracing.tracer import active

if TYPE_CHECKING:
    from pathlib import Path

    from draftsman.settings.log import LogSettings

OWN = ("draftsman", "draftsman_tui", "draftsman_bots", "draftsman_soak")
"""Loggers that follow the configured level; libraries log warnings and errors only."""


_hidden: set[str] = set()
"""Values of secrets that this process has read."""
WORKER: Final[ContextVar[str | None]] = ContextVar("worker", default=None)
"""The worker that logs, for records in JSON."""
RUN: Final[ContextVar[tuple[str, int] | None]] = ContextVar("run", default=None)
"""The job and the number of its run in which this task logs, for records in JSON."""


class LogFields(TypedDict, total=False):
    """The known fields, in the order in which a line shows them."""

    job: object
    run: object
    question: object
    type: object
    queue: object
    worker: object
    agent: object
    sweep: object
    actor: object
    pid: object
    count: object
    seconds: object
    event: LogEvent


class LogEvent(StrEnum):
    """Machine-readable type of a log line, for programs that read the log."""

    WORKER_STARTED = "worker_started"
    WORKER_STOPPED = "worker_stopped"
    LEADER_STARTED = "leader_started"
    LEADER_STOPPED = "leader_stopped"


def keys(**values: Unpack[LogFields]) -> LogFields:
    """Return the `extra` of a log call; the line omits None values."""
    return values


def redact(text: str) -> str:
    """Return `text` with secrets replaced by `***`.

    Recognizes passwords in URLs and connection strings, values of keys named after secrets,
    Authorization headers, the formats of tokens that the rule `secrets` of a policy finds, and the
    values that `hide` was called with.
    """
    text = hide_secrets(text)
    for value in _hidden:
        text = text.replace(value, HIDDEN)
    return text


def hide(value: str) -> None:
    """Let `redact` replace this secret from now on; short ones would match ordinary words."""
    _hidden.add(value)


def redact_values(value: Any) -> Any:
    """Return a value with secrets replaced at every level."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, Mapping):
        return {key: redact_values(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [redact_values(item) for item in value]
    return value


def setup(settings: LogSettings, stream: TextIO | None = None) -> None:
    """Log to `stream` (default stderr) and to the configured file.

    A second call replaces the handlers of the first. Never raises for an unwritable file.
    """
    level = getattr(logging, settings.level.upper())
    screen = _Screen(stream or sys.stderr)
    tracebacks = level <= logging.DEBUG
    as_json = _JsonLine(tracebacks=tracebacks) if settings.format == "json" else None
    screen.setFormatter(as_json or _Line(tracebacks=tracebacks, color=_wants_color(screen)))
    handlers: list[logging.Handler] = [screen]
    if settings.file is not None:
        handlers.append(_File(settings.file, screen))
        handlers[-1].setFormatter(as_json or _Line(tracebacks=tracebacks))
    root = logging.getLogger()
    for old in [handler for handler in root.handlers if isinstance(handler, _Screen | _File)]:
        root.removeHandler(old)
    for handler in handlers:
        root.addHandler(handler)
    root.setLevel(max(level, logging.WARNING))
    for name in OWN:
        logging.getLogger(name).setLevel(level)


class _Screen(logging.StreamHandler[TextIO]):
    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - logging's name
        """Ignore the error: stderr is closed or full, so it cannot be reported."""


class _File(logging.Handler):
    """Appends to a file, which is opened for each line so that it can be rotated."""

    def __init__(self, path: Path, screen: logging.Handler) -> None:
        super().__init__()
        self._path = path
        self._screen = screen
        self._broken = False

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._append(self.format(record) + "\n")
            self._broken = False
        except (OSError, ValueError) as error:
            self._report(error)

    def _append(self, line: str) -> None:
        data = line.encode("utf-8", "backslashreplace")
        # Without O_NONBLOCK, a named pipe without a reader would block the process.
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK
        file = os.open(self._path, flags, 0o600)
        try:
            if os.write(file, data) < len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        finally:
            os.close(file)

    def _report(self, error: OSError | ValueError) -> None:
        """Warn once per outage that lines are missing from the file."""
        if self._broken:
            return
        self._broken = True
        reason = error.strerror if isinstance(error, OSError) else error
        text = f"cannot write log file {self._path}: {reason}; logging to stderr only"
        record = logging.makeLogRecord({"name": __name__, "levelname": "WARNING", "msg": text})
        self._screen.handle(record)


_COLORS = {"DEBUG": "2", "INFO": "32", "WARNING": "33", "ERROR": "31", "CRITICAL": "1;31"}
_BASE: Final = frozenset({"time", "level", "logger", "message"})
_EVENT: Final = re.compile(r" event=(\w+)(?= |$)")
_STANDARD = {*vars(logging.makeLogRecord({})), "message", "asctime", "taskName"}
_ORDER = {key: index for index, key in enumerate(LogFields.__annotations__)}


class _Line(logging.Formatter):
    def __init__(self, *, tracebacks: bool, color: bool = False) -> None:
        super().__init__()
        self._tracebacks = tracebacks
        self._color = color

    def format(self, record: logging.LogRecord) -> str:
        words = [_time(record), self._level(record), record.name, _clean(_message(record))]
        words += [f"{key}={_quote(_clean(str(value)))}" for key, value in _extras(record)]
        if (ids := _trace_ids()) is not None:
            words.append(f"trace_id={ids[0]}")
        error = record.exc_info[1] if record.exc_info else None
        if error is not None:
            words.append(f"error={_quote(_clean(f'{type(error).__name__}: {error}'))}")
        line = " ".join(words)
        if error is None or not self._tracebacks:
            return line
        trace = "".join(traceback.format_exception(error)).splitlines()
        return "\n  ".join([line, *map(_clean, trace)])

    def _level(self, record: logging.LogRecord) -> str:
        name = record.levelname.lower()
        if not self._color:
            return name
        return f"\x1b[{_COLORS.get(record.levelname, '0')}m{name}\x1b[0m"


class _JsonLine(logging.Formatter):
    """A JSON object on a line, in ASCII: no text can break the line or control a terminal."""

    def __init__(self, *, tracebacks: bool) -> None:
        super().__init__()
        self._tracebacks = tracebacks

    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, object] = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": redact(_message(record)),
        }
        if (run := RUN.get()) is not None and getattr(record, "job", None) is None:
            entry["job"], entry["run"] = run
        if (worker := WORKER.get()) is not None:
            entry["worker"] = worker
        if (ids := _trace_ids()) is not None:
            entry["trace_id"], entry["span_id"] = ids
        for key, value in _extras(record):
            if key not in _BASE:
                is_plain = isinstance(value, bool | int) or (
                    isinstance(value, float) and math.isfinite(value)
                )
                entry[key] = value if is_plain else redact(str(value))
        error = record.exc_info[1] if record.exc_info else None
        if error is not None:
            entry["error"] = redact(f"{type(error).__name__}: {error}")
            if self._tracebacks:
                entry["traceback"] = redact("".join(traceback.format_exception(error)))
        return json.dumps(entry)


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line of a log, in either format."""

    level: str
    logger: str
    text: str
    event: str | None


def parse_line(line: str) -> LogLine | None:
    """Parse a line of a log; None for a line that is no record."""
    if line.startswith("{"):
        try:
            entry = json.loads(line)
            text, event = entry["message"], entry.get("event")
            return LogLine(entry["level"], entry["logger"], text, event)
        except (ValueError, KeyError, TypeError):
            return None
    match line.split(" ", 3):
        case [_, level, logger, text]:
            found = _EVENT.search(text)
            return LogLine(level, logger, text, found[1] if found else None)
    return None


def _time(record: logging.LogRecord) -> str:
    seconds = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
    return f"{seconds}.{int(record.msecs):03d}Z"


def _trace_ids() -> tuple[str, str] | None:
    """Return the ids of the current trace and span, while traces are recorded."""
    tracer = active()
    context = None if tracer is None else tracer.context()
    return None if context is None else context.ids


def _message(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except Exception:  # keep the line in spite of a wrong format string
        return f"{record.msg} {record.args!r}"


def _extras(record: logging.LogRecord) -> list[tuple[str, object]]:
    fields = vars(record).items()
    extras = [(key, value) for key, value in fields if key not in _STANDARD and value is not None]
    return sorted(extras, key=lambda pair: (_ORDER.get(pair[0], len(_ORDER)), pair[0]))


def _clean(text: str) -> str:
    # line breaks would split a record; escape sequences in a ticket would control the terminal
    return escape_invisible(redact(text), lines=False)


def _quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False) if not text or re.search(r'[\s"=]', text) else text


def _wants_color(screen: logging.StreamHandler[TextIO]) -> bool:
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return screen.stream.isatty()
