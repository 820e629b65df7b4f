"""Landlock rules for files, TCP, signals and abstract sockets.

Standard library only: runs between fork and exec of a guard's child.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

CREATE_RULESET = 444
ADD_RULE = 445
RESTRICT_SELF = 446
"""Numbers of the system calls; the same on every architecture since Linux 5.13."""
VERSION_FLAG = 1
PATH_BENEATH = 1
NET_PORT = 2
"""Types of rules."""
PR_SET_NO_NEW_PRIVS = 38
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = (1 << bit for bit in range(4))
MAKE_CHAR = 1 << 6
MAKE_BLOCK = 1 << 11
TRUNCATE = 1 << 14
IOCTL_DEV = 1 << 15
ALL_FILES = (1 << 16) - 1
"""Every right on files of ABI 5 and later."""
FILE_RIGHTS = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV
"""The rights that a rule on a plain file or a device may have."""
READ = EXECUTE | READ_FILE | READ_DIR
WRITE = ALL_FILES & ~(MAKE_CHAR | MAKE_BLOCK)
BIND_AND_CONNECT_TCP = 0b11
CONNECT_TCP = 0b10
ABSTRACT_SOCKETS_AND_SIGNALS = 0b11
OLDEST_ABI = 6
MISSING = "this kernel has"
DISABLED = "Landlock is disabled in this kernel"
BLOCKED = "its system calls are blocked"

_libc = ctypes.CDLL(None, use_errno=True)


def abi() -> int:
    """Return the Landlock ABI of this kernel; 0 without Landlock."""
    version: int = _libc.syscall(CREATE_RULESET, None, ctypes.c_size_t(0), VERSION_FLAG)
    return max(version, 0)


def problem() -> str | None:
    """Return why Landlock cannot be used; None if it can."""
    version = abi()
    if version >= OLDEST_ABI:
        return None
    if version > 0:
        return f"{MISSING} Landlock ABI {version}; {OLDEST_ABI} or later is required"
    reason = ctypes.get_errno()
    if reason == errno.EOPNOTSUPP:
        return DISABLED
    return f"{MISSING} no Landlock" if reason == errno.ENOSYS else f"{BLOCKED} here"


def restrict(
    read: Iterable[str],
    write: Iterable[str],
    network: bool,
    ports: Iterable[int] = (),
    own_port: int | None = None,
    listed: Iterable[str] = (),
) -> None:
    """Confine this process and its future children permanently.

    They may read and execute below `read`, list the names below `listed`, do everything except
    create devices below `write`, and use TCP if `network`, else connect to `ports` of any address,
    and listen on `own_port`, only; signals and abstract sockets reach only each other. Raises
    OSError.
    """
    ruleset = _ruleset(ALL_FILES, 0 if network else BIND_AND_CONNECT_TCP)
    for paths, access in ((read, READ), (write, WRITE), (listed, READ_DIR)):
        for path in paths:
            _allow(ruleset, path, access)
    rights = dict.fromkeys(ports, CONNECT_TCP)
    if own_port is not None:
        rights[own_port] = BIND_AND_CONNECT_TCP
    for port, access in () if network else rights.items():
        rule = struct.pack("=QQ", access, port)
        _check_call(_libc.syscall(ADD_RULE, ruleset, NET_PORT, rule, 0))
    _restrict_self(ruleset)


def scope() -> None:
    """Block abstract sockets and signals of other processes; raises OSError."""
    _restrict_self(_ruleset(0, 0))


def no_new_privileges() -> None:
    """Disable set-uid programs for this process and its children."""
    _check_call(_libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))


def _ruleset(files: int, network: int) -> int:
    attributes = struct.pack("QQQ", files, network, ABSTRACT_SOCKETS_AND_SIGNALS)
    size = ctypes.c_size_t(len(attributes))
    return _check_call(_libc.syscall(CREATE_RULESET, attributes, size, 0))


def _allow(ruleset: int, path: str, access: int) -> None:
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        if not stat.S_ISDIR(os.fstat(descriptor).st_mode):
            access &= FILE_RIGHTS
        rule = struct.pack("=Qi", access, descriptor)
        _check_call(_libc.syscall(ADD_RULE, ruleset, PATH_BENEATH, rule, 0))
    finally:
        os.close(descriptor)


def _restrict_self(ruleset: int) -> None:
    no_new_privileges()
    _check_call(_libc.syscall(RESTRICT_SELF, ruleset, 0))
    os.close(ruleset)


def _check_call(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
