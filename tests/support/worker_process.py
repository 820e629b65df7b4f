"""A process of pytest-xdist: executes the code that execnet sends."""

from __future__ import annotations

import faulthandler
import os
import sys
import threading
import warnings
from pathlib import Path

from _pytest.assertion.rewrite import AssertionRewritingHook


def leave_pytest() -> None:
    """Undo changes that pytest made to the interpreter before the fork."""
    sys.meta_path[:] = [f for f in sys.meta_path if not isinstance(f, AssertionRewritingHook)]
    sys.excepthook = sys.__excepthook__
    sys.unraisablehook = sys.__unraisablehook__
    threading.excepthook = threading.__excepthook__
    faulthandler.disable()
    warnings.resetwarnings()
    for category in (ResourceWarning, ImportWarning, PendingDeprecationWarning, DeprecationWarning):
        warnings.simplefilter("ignore", category)
    warnings.filterwarnings("default", category=DeprecationWarning, module="__main__")


def forget_tests(root: Path) -> None:
    """Remove the tests, which are imported again by commands that use them."""
    ours = ("tests", "draftsman_testing")
    for name in [name for name in sys.modules if name.partition(".")[0] in ours]:
        del sys.modules[name]
    own = {"", str(root), str(Path.cwd()), *os.environ.get("PYTHONPATH", "").split(os.pathsep)}
    sys.path[:] = [path for path in sys.path if path not in own]


if __name__ == "__main__":
    exec(eval(sys.stdin.readline()))
