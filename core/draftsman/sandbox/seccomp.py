"""A seccomp filter: system calls that a program of a run cannot make, on x86-64 and ARM64.

The worker builds the filter, a program of classic BPF as in the kernel's
Documentation/userspace-api/seccomp_filter.rst; the process applies it before it executes the
program. Refused calls fail with EPERM; calls for which programs have another way, with ENOSYS.
Standard library only: the guard imports this module.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct

from draftsman.sandbox import landlock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

NUMBERS = {
    # name: number on x86-64, on ARM64
    "add_key": (248, 217),
    "bpf": (321, 280),
    "delete_module": (176, 106),
    "fanotify_init": (300, 262),
    "finit_module": (313, 273),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fsopen": (430, 430),
    "fspick": (433, 433),
    "init_module": (175, 105),
    "kcmp": (312, 272),
    "kexec_file_load": (320, 294),
    "kexec_load": (246, 104),
    "keyctl": (250, 219),
    "mount": (165, 40),
    "mount_setattr": (442, 442),
    "move_mount": (429, 429),
    "open_by_handle_at": (304, 265),
    "open_tree": (428, 428),
    "perf_event_open": (298, 241),
    "pidfd_getfd": (438, 438),
    "pivot_root": (155, 41),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "ptrace": (101, 117),
    "request_key": (249, 218),
    "setns": (308, 268),
    "swapoff": (168, 225),
    "swapon": (167, 224),
    "syslog": (103, 116),
    "umount2": (166, 39),
    "unshare": (272, 97),
    "userfaultfd": (323, 282),
}
"""Calls that are refused with any arguments."""
MISSING = {
    "clone3": (435, 435),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "io_uring_setup": (425, 425),
}
"""Calls that do not exist inside: programs then use clone, whose flags can be read, and epoll."""
CLONE = (56, 220)
IOCTL = (16, 29)
PERSONALITY = (135, 92)
SOCKET = (41, 198)
SOCKETPAIR = (53, 199)
SENDTO = (44, 206)
SENDMSG = (46, 211)
SENDMMSG = (307, 269)
MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
"""Column of the numbers, and AUDIT_ARCH, of a machine."""
NEW_NAMESPACES = 0x7E020000
"""Flags of clone: NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID and NEWNET."""
TIOCSTI = 0x5412
TIOCLINUX = 0x541C
PERSONALITIES = (0, 8, 0xFFFFFFFF)
"""PER_LINUX, PER_LINUX32, and the query."""
AF_UNIX = 1
AF_INET = 2
AF_INET6 = 10
AF_NETLINK = 16
NETLINK_ROUTE = 0
SOCK_STREAM = 1
TYPE_MASK = 0xF
IPPROTO_TCP = 6
MSG_FASTOPEN = 0x20000000
"""Flag that connects with the first bytes; Landlock checks `connect` alone."""
X32 = 0x40000000
"""First number of the calls with 32-bit pointers on x86-64."""

LOAD = 0x20
JUMP_EQUAL = 0x15
JUMP_AT_LEAST = 0x35
JUMP_BITS = 0x45
AND = 0x54
RETURN = 0x06
NUMBER = 0
ARCHITECTURE = 4
ARGUMENTS = 16
"""Offsets in seccomp_data; of an argument the low half, on little-endian machines."""
ALLOW = 0x7FFF0000
ERROR = 0x00050000
KILL = 0x80000000
PR_SET_SECCOMP = 22
MODE_FILTER = 2

_libc = ctypes.CDLL(None, use_errno=True)


def build(tcp_only: bool, machine: str | None = None) -> bytes | None:
    """Return the filter for a machine, by default this one; None where there is none.

    With `tcp_only` internet sockets are those of TCP, which Landlock limits; it limits neither UDP
    nor multipath TCP, nor connections of TCP Fast Open.
    """
    machine_abi = MACHINES.get(machine or os.uname().machine)
    if machine_abi is None:
        return None
    column, architecture = machine_abi
    lines = _Lines()
    lines.load(ARCHITECTURE)
    lines.jump(JUMP_EQUAL, architecture, "native", "kill")
    lines.label("native")
    lines.load(NUMBER)
    if column == 0:
        lines.jump(JUMP_AT_LEAST, X32, "missing")
    for numbers in NUMBERS.values():
        lines.jump(JUMP_EQUAL, numbers[column], "refuse")
    for numbers in MISSING.values():
        lines.jump(JUMP_EQUAL, numbers[column], "missing")
    for name, numbers in (
        ("clone", CLONE),
        ("ioctl", IOCTL),
        ("personality", PERSONALITY),
        ("socket", SOCKET),
        ("socketpair", SOCKETPAIR),
    ):
        lines.jump(JUMP_EQUAL, numbers[column], name)
    if tcp_only:
        for name, numbers in (("flags of 3", SENDMSG), ("flags of 4", SENDTO)):
            lines.jump(JUMP_EQUAL, numbers[column], name)
        lines.jump(JUMP_EQUAL, SENDMMSG[column], "flags of 4")
    lines.go("allow")
    for name, argument in (("flags of 3", 2), ("flags of 4", 3)) if tcp_only else ():
        lines.label(name)
        lines.load(ARGUMENTS + 8 * argument)
        lines.jump(JUMP_BITS, MSG_FASTOPEN, "refuse", "allow")
    lines.label("clone")
    lines.load(ARGUMENTS)
    lines.jump(JUMP_BITS, NEW_NAMESPACES, "refuse", "allow")
    lines.label("ioctl")
    lines.load(ARGUMENTS + 8)
    lines.jump(JUMP_EQUAL, TIOCSTI, "refuse")
    lines.jump(JUMP_EQUAL, TIOCLINUX, "refuse", "allow")
    lines.label("personality")
    lines.load(ARGUMENTS)
    for value in PERSONALITIES:
        lines.jump(JUMP_EQUAL, value, "allow")
    lines.go("refuse")
    lines.label("socketpair")
    lines.load(ARGUMENTS)
    lines.jump(JUMP_EQUAL, AF_UNIX, "allow", "refuse")
    lines.label("socket")
    lines.load(ARGUMENTS)
    lines.jump(JUMP_EQUAL, AF_UNIX, "allow")
    lines.jump(JUMP_EQUAL, AF_INET, "internet")
    lines.jump(JUMP_EQUAL, AF_INET6, "internet")
    lines.jump(JUMP_EQUAL, AF_NETLINK, "netlink", "family")
    lines.label("netlink")  # getaddrinfo and getifaddrs read the addresses of this host
    lines.load(ARGUMENTS + 16)
    lines.jump(JUMP_EQUAL, NETLINK_ROUTE, "allow", "refuse")
    lines.label("internet")
    if tcp_only:
        lines.load(ARGUMENTS + 8)
        lines.add(AND, TYPE_MASK)
        lines.jump(JUMP_EQUAL, SOCK_STREAM, "tcp", "refuse")
        lines.label("tcp")
        lines.load(ARGUMENTS + 16)
        lines.jump(JUMP_EQUAL, 0, "allow")
        lines.jump(JUMP_EQUAL, IPPROTO_TCP, "allow", "refuse")
    lines.label("allow")
    lines.add(RETURN, ALLOW)
    for label, result in (
        ("refuse", ERROR | errno.EPERM),
        ("missing", ERROR | errno.ENOSYS),
        ("family", ERROR | errno.EAFNOSUPPORT),
        ("kill", KILL),
    ):
        lines.label(label)
        lines.add(RETURN, result)
    return lines.assemble()


def apply(program: bytes) -> None:
    """Filter the calls of this process and its children permanently; raises OSError."""
    landlock.no_new_privileges()
    buffer = ctypes.create_string_buffer(program, len(program))
    fprog = struct.pack("HP", len(program) // 8, ctypes.addressof(buffer))
    if _libc.prctl(PR_SET_SECCOMP, MODE_FILTER, fprog, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


class _Lines:
    """Instructions with labels, which `assemble` replaces by distances; jumps go forward."""

    def __init__(self) -> None:
        self._lines: list[Any] = []
        self._labels: dict[str, int] = {}

    def add(self, code: int, value: int, labels: Sequence[str | None] = (None, None)) -> None:
        self._lines.append((code, value, labels))

    def load(self, offset: int) -> None:
        self.add(LOAD, offset)

    def jump(self, code: int, value: int, yes: str, no: str | None = None) -> None:
        """Go to `yes` if the comparison holds, else to `no`, by default the next line."""
        self.add(code, value, (yes, no))

    def go(self, label: str) -> None:
        self.add(JUMP_AT_LEAST, 0, (label, label))

    def label(self, name: str) -> None:
        self._labels[name] = len(self._lines)

    def assemble(self) -> bytes:
        program = b""
        for at, (code, value, labels) in enumerate(self._lines):
            steps = [0 if label is None else self._labels[label] - at - 1 for label in labels]
            program += struct.pack("HBBI", code, *steps, value)
        return program
