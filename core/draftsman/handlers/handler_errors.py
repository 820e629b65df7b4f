"""Failures of handlers, and the programming errors among them, which a retry cannot fix.

A missing import or name, code that does not compile and `NotImplementedError` are programming
errors wherever they are raised. A `TypeError` or an `AttributeError` may also come from a library
that failed on the data at hand, so it counts only if the handler's own code raised it, directly or
by a call into Python or draftsman. `AssertionError`, `KeyError`, `ValueError` and the like depend
on data, which may differ in the next attempt.
"""

from __future__ import annotations

import asyncio
import sysconfig
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Final

from pydantic import ValidationError

from draftsman.errors import Failure
from draftsman.jobs.retries import as_failure
from draftsman.jobs.runs.outcome import Parked
from draftsman.jobs.runs.service.settlement import ERROR_LIMIT
from draftsman.questions.question_spec import Choice

ALWAYS_MISTAKES: Final = (ImportError, NameError, NotImplementedError, SyntaxError)
MISTAKES_IN_OWN_CODE: Final = (AttributeError, TypeError)
PACKAGE: Final = "draftsman"
INSTALLED: Final = frozenset({"site-packages", "dist-packages"})
_PYTHON: Final = tuple({f"{sysconfig.get_path(name)}/" for name in ("stdlib", "platstdlib")})
UNREQUESTED_CANCELLATION: Final = (
    "CancelledError: nobody canceled the run; the handler awaited a task that was canceled, or"
    " canceled itself"
)


def handler_failure(error: BaseException, module: str) -> Failure:
    """Translate an exception of a handler in `module`, even if its text cannot be formatted."""
    if isinstance(error, Parked):
        text = "the handler raised Parked, but its run is not waiting for anything"
        return Failure(text, code="programming_error")
    if isinstance(error, asyncio.CancelledError):
        return Failure(UNREQUESTED_CANCELLATION)
    try:
        failure = as_failure(error)
        if failure is error or (location := find_error_location(error, module)) is None:
            return failure
        suffix = f" ({location})" if location else ""
        return Failure(f"{failure}{suffix}", code="programming_error")
    except Exception as nested:
        return Failure(
            f"{type(error).__name__} with an unprintable message: {type(nested).__name__}"
        )


def failure_details(error: BaseException, failure: Failure) -> str | None:
    """Return the parts of an error that job and run leave out: the traceback, or a long text.

    The traceback begins in the code of the handler, after the calls by which draftsman reached it.
    A Failure that draftsman raised, such as a built-in handler, has none.
    """
    if failure is error and not _is_raised_by_handler(error):
        text = str(failure)
        return text if len(text) > ERROR_LIMIT else None
    begin = error.__traceback__
    while begin is not None and _is_call_of_handler(begin.tb_frame):
        begin = begin.tb_next
    return "".join(traceback.format_exception(type(error), error, begin or error.__traceback__))


def _is_raised_by_handler(error: BaseException) -> bool:
    """Return whether the code that raised an error is none of draftsman."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    return bool(frames) and not _is_call_of_handler(frames[-1])


def find_error_location(error: BaseException, module: str) -> str | None:
    """Return the location of a programming error, as `file.py:12`; None for other errors.

    The location is empty if no code of the handler is in the traceback, as for a handler that
    takes no context. `module` is the module of the handler. In an exception group every error has
    to be a programming error.
    """
    locations = [_location(leaf, module) for leaf in _leaves(error)]
    return locations[0] if locations and None not in locations else None


def _location(error: BaseException, module: str) -> str | None:
    frames = [
        (frame, line)
        for frame, line in traceback.walk_tb(error.__traceback__)
        if not _is_python(frame.f_code.co_filename)
    ]
    if not (frames and _is_mistake(error, frames[-1][0], module)):
        return None
    own_frames = [(frame, line) for frame, line in frames if _is_own(frame, module)]
    if not own_frames:
        return ""
    frame, line = own_frames[-1]
    return f"{Path(frame.f_code.co_filename).name}:{line}"


def _is_mistake(error: BaseException, last: FrameType, module: str) -> bool:
    if isinstance(error, SyntaxError):  # except in code passed to eval or literal_eval
        return not (error.filename or "<").startswith("<")
    if isinstance(error, ALWAYS_MISTAKES):
        return True
    if isinstance(error, ValidationError):
        return error.title == Choice.__name__
    if not isinstance(error, MISTAKES_IN_OWN_CODE) or _package_of(module) == PACKAGE:
        return False
    return _is_own(last, module) or _package_of_frame(last) == PACKAGE


def _is_own(frame: FrameType, module: str) -> bool:
    """Return whether code belongs to the handler's package or is not an installed package."""
    if _package_of_frame(frame) in (PACKAGE, _package_of(module)):
        return _package_of_frame(frame) != PACKAGE
    return not INSTALLED & set(Path(frame.f_code.co_filename).parts)


def _is_call_of_handler(frame: FrameType) -> bool:
    return _package_of_frame(frame) == PACKAGE or _is_python(frame.f_code.co_filename)


def _is_python(filename: str) -> bool:
    """Return whether a file is part of Python, whose errors are attributed to the caller."""
    if filename.startswith("<frozen "):
        return True
    return filename.startswith(_PYTHON) and not INSTALLED & set(Path(filename).parts)


def _package_of_frame(frame: FrameType) -> str:
    return _package_of(str(frame.f_globals.get("__name__", "")))


def _package_of(module: str) -> str:
    return module.partition(".")[0]


def _leaves(error: BaseException) -> Iterator[BaseException]:
    """Yield the errors of a nested group; the error itself if it is no group."""
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _leaves(inner)
    else:
        yield error
