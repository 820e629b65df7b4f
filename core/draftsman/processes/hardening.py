"""Process hardening: protection against inspection by other processes of the same user."""

from __future__ import annotations

import sys
from typing import Final

PR_SET_DUMPABLE: Final = 4


def deny_inspection() -> None:
    """Make this process not dumpable, before it reads its first secret.

    Its environment, memory and open files in `/proc` then belong to root, a debugger cannot attach,
    and no core dump is written (prctl(2), ptrace(2)). `stat`, `status` and `cmdline` stay readable.
    Children inherit the flag until execve(2) resets it. Does nothing on other systems than Linux.
    """
    if sys.platform != "linux":
        return
    import ctypes

    ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
