"""Programming errors of handlers: what trying again cannot change.

An import, a name or a method that is missing, and code that does not compile or is not written yet
are mistakes wherever they are raised. A `TypeError` or an `AttributeError` may as well come out of
a library that choked on the data of a moment: it counts only where the handler's own code raised
it, or a call of that code into Python or draftsman. `AssertionError`, `KeyError`, `ValueError` and
the like check or look up data, which may be other data the next time.
"""

from __future__ import annotations

import sysconfig
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Final

from pydantic import ValidationError

from draftsman.domain.question import Choice

ALWAYS_MISTAKES: Final = (ImportError, NameError, NotImplementedError, SyntaxError)
MISTAKES_IN_OWN_CODE: Final = (AttributeError, TypeError)
PACKAGE: Final = "draftsman"
INSTALLED: Final = frozenset({"site-packages", "dist-packages"})
_PYTHON: Final = tuple({f"{sysconfig.get_path(name)}/" for name in ("stdlib", "platstdlib")})


def find_error_location(error: BaseException, module: str) -> str | None:
    """Return where a handler's own code made a mistake, as `file.py:12`; None for other errors.

    It is empty where no code of the handler is involved, as for one that takes no context. `module`
    is the module of the handler. Of a group each error has to be a mistake.
    """
    found = [_place(leaf, module) for leaf in _leaves(error)]
    return found[0] if found and None not in found else None


def _place(error: BaseException, module: str) -> str | None:
    frames = [
        (frame, line)
        for frame, line in traceback.walk_tb(error.__traceback__)
        if not _is_python(frame.f_code.co_filename)
    ]
    if not (frames and _is_mistake(error, frames[-1][0], module)):
        return None
    own = [(frame, line) for frame, line in frames if _is_own(frame, module)]
    return f"{Path(own[-1][0].f_code.co_filename).name}:{own[-1][1]}" if own else ""


def _is_mistake(error: BaseException, last: FrameType, module: str) -> bool:
    if isinstance(error, SyntaxError):  # not that of a text given to eval or literal_eval
        return not (error.filename or "<").startswith("<")
    if isinstance(error, ALWAYS_MISTAKES):
        return True
    if isinstance(error, ValidationError):
        return error.title == Choice.__name__
    if not isinstance(error, MISTAKES_IN_OWN_CODE) or _root(module) == PACKAGE:
        return False
    return _is_own(last, module) or _root_of(last) == PACKAGE


def _is_own(frame: FrameType, module: str) -> bool:
    """Return whether code is the handler's package, or lies where nothing is installed."""
    if _root_of(frame) in (PACKAGE, _root(module)):
        return _root_of(frame) != PACKAGE
    return not INSTALLED & set(Path(frame.f_code.co_filename).parts)


def _is_python(filename: str) -> bool:
    """Return whether a file is of Python itself, whose errors are those of its caller."""
    if filename.startswith("<frozen "):
        return True
    return filename.startswith(_PYTHON) and not INSTALLED & set(Path(filename).parts)


def _root_of(frame: FrameType) -> str:
    return _root(str(frame.f_globals.get("__name__", "")))


def _root(module: str) -> str:
    return module.partition(".")[0]


def _leaves(error: BaseException) -> Iterator[BaseException]:
    """Yield the errors of a group, however deep; the error itself where it is none."""
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _leaves(inner)
    else:
        yield error
