"""Decisions of the seccomp filter, by an interpreter of its instructions."""

from __future__ import annotations

import errno
import os
import struct
from functools import partial

from draftsman.sandbox import seccomp
from tests.support.cases import cases

ALLOWED = "allowed"
REFUSED = errno.EPERM
MISSING = errno.ENOSYS
CLONE_NEWUSER = 0x10000000
SIGCHLD = 17
CLONE_THREAD_FLAGS = 0x3D0F00
AF_VSOCK = 40
SOCK_DGRAM = 2
SOCK_CLOEXEC = 0o2000000
MPTCP = 262
CASES = [
    ((), "ptrace", REFUSED),
    ((), "io_uring_setup", MISSING),
    ((), "clone3", MISSING),
    ((SIGCHLD,), "clone", ALLOWED),
    ((CLONE_THREAD_FLAGS,), "clone", ALLOWED),
    ((CLONE_NEWUSER | SIGCHLD,), "clone", REFUSED),
    ((0, seccomp.TIOCSTI), "ioctl", REFUSED),
    ((0, seccomp.TIOCSTI | 1 << 32), "ioctl", REFUSED),
    ((0, 0x5401), "ioctl", ALLOWED),
    ((0xFFFFFFFF,), "personality", ALLOWED),
    ((0x40000,), "personality", REFUSED),
    ((1, SOCK_DGRAM, 0), "socket", ALLOWED),
    ((2, 1 | SOCK_CLOEXEC, 6), "socket", ALLOWED),
    ((16, 3, 0), "socket", ALLOWED),
    ((16, 3, 9), "socket", REFUSED),
    ((AF_VSOCK, 1, 0), "socket", errno.EAFNOSUPPORT),
    ((1, 1, 0), "socketpair", ALLOWED),
    ((30, 1, 0), "socketpair", REFUSED),
]
CALLS = {
    **seccomp.NUMBERS,
    **seccomp.MISSING,
    "clone": seccomp.CLONE,
    "ioctl": seccomp.IOCTL,
    "personality": seccomp.PERSONALITY,
    "socket": seccomp.SOCKET,
    "socketpair": seccomp.SOCKETPAIR,
}


def decision(program: bytes, number: int, architecture: int, *arguments: int) -> int | str:
    """Return the decision of a program about a call, as the kernel interprets it."""
    values = (*arguments, *(0,) * (6 - len(arguments)))
    data = struct.pack("<IIQ6Q", number, architecture, 0, *values)
    lines = [struct.unpack_from("<HBBI", program, at) for at in range(0, len(program), 8)]
    at = accumulator = 0
    while True:
        code, yes, no, value = lines[at]
        at += 1
        if code == seccomp.LOAD:
            [accumulator] = struct.unpack_from("<I", data, value)
        elif code == seccomp.AND:
            accumulator &= value
        elif code == seccomp.RETURN:
            if value in (seccomp.ALLOW, seccomp.KILL):
                return ALLOWED if value == seccomp.ALLOW else "killed"
            return int(value & 0xFFFF)
        else:
            holds = {
                seccomp.JUMP_EQUAL: accumulator == value,
                seccomp.JUMP_AT_LEAST: accumulator >= value,
                seccomp.JUMP_BITS: accumulator & value != 0,
            }[code]
            at += yes if holds else no


def test_each_call_is_decided_by_its_number_and_arguments_on_both_machines() -> None:
    for machine, (column, architecture) in seccomp.MACHINES.items():
        program = seccomp.build(False, machine)
        assert program is not None
        for arguments, name, expected in CASES:
            found = decision(program, CALLS[name][column], architecture, *arguments)
            assert found == expected, (machine, name, arguments)
        assert decision(program, CALLS["socket"][column], architecture, 2, SOCK_DGRAM) == ALLOWED
        assert decision(program, 0, architecture) == ALLOWED
        assert decision(program, 0, 0x40000003) == "killed"  # i386, whose numbers differ
    x86 = seccomp.build(False, "x86_64")
    assert x86 is not None
    assert decision(x86, seccomp.X32 + 101, seccomp.MACHINES["x86_64"][1]) == MISSING
    assert seccomp.build(True, "s390x") is None


@cases("family", [seccomp.AF_INET, seccomp.AF_INET6])
def test_without_a_network_namespace_internet_sockets_are_those_of_tcp(family: int) -> None:
    for machine, (column, architecture) in seccomp.MACHINES.items():
        program = seccomp.build(True, machine)
        assert program is not None

        socket = partial(decision, program, seccomp.SOCKET[column], architecture)
        assert [socket(family, 1 | SOCK_CLOEXEC), socket(family, 1, 6)] == [ALLOWED, ALLOWED]
        assert [socket(family, SOCK_DGRAM), socket(family, 3, 1)] == [REFUSED, REFUSED]
        assert socket(family, 1, MPTCP) == REFUSED
        assert socket(seccomp.AF_UNIX, SOCK_DGRAM) == ALLOWED


def test_without_a_network_namespace_no_sent_bytes_open_a_connection() -> None:
    """Landlock checks `connect`, and not the connections of TCP Fast Open."""
    for machine, (column, architecture) in seccomp.MACHINES.items():
        closed, opened = (seccomp.build(tcp_only, machine) for tcp_only in (True, False))
        assert closed is not None
        assert opened is not None
        for call, at in ((seccomp.SENDTO, 3), (seccomp.SENDMSG, 2), (seccomp.SENDMMSG, 3)):
            for flags, expected in ((0x4000, ALLOWED), (0x4000 | seccomp.MSG_FASTOPEN, REFUSED)):
                arguments = (*(0xFFFFFFFF,) * at, flags)
                assert decision(closed, call[column], architecture, *arguments) == expected
                assert decision(opened, call[column], architecture, *arguments) == ALLOWED


def test_this_machine_has_a_filter_if_it_is_known() -> None:
    assert (seccomp.build(False) is not None) == (os.uname().machine in seccomp.MACHINES)
