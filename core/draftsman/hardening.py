"""Protection of this process against inspection by other processes of its user."""

from __future__ import annotations

import sys
from typing import Final

PR_SET_DUMPABLE: Final = 4


def deny_inspection() -> None:
    """Make this process not dumpable, on Linux: call it before the first secret is read.

    Its environment, memory and open files in `/proc` then belong to root, a debugger cannot attach,
    and no core dump is written (prctl(2), ptrace(2)). `stat`, `status` and `cmdline` stay readable.
    A child inherits it until it calls execve(2), which resets it. Does nothing where the kernel
    has no such call.
    """
    if sys.platform != "linux":
        return
    import ctypes

    ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
