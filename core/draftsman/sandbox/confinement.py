"""Confinement of a process before exec: limits, user, namespaces or Landlock.

The plan is a dictionary from `draftsman.sandbox.sandbox_plan`, as `encode` returns it:

    mode     "bwrap", "landlock", "user", "container" or "off"
    bwrap    path of the program
    run, control, engine_environment   of container: see `container_client`
    uid      user and group id to change to, or null to keep the worker's
    network  whether TCP and the host's network are open
    mounts   [kind, source, destination] of bwrap: ro, rw or link
    chdir    folder to start in, as seen inside
    ports    ports that the program may connect to
    own_port port on which the program itself listens, or null
    port_sockets, port_opener   [descriptor, port] of each port that the command opens
    read, write, listed   paths of Landlock
    landlock  whether the kernel has Landlock; of user
    seccomp  filter of system calls, as bytes, or null
    memory, file_size, processes, tmp   limits: bytes, bytes, count, bytes

The program's environment is in a variable, so that it has no effect before the confinement:
the dynamic linker must not follow an LD_LIBRARY_PATH into the clone. Standard library only.
"""

# ruff: noqa: PTH103, PTH118, PTH123
from __future__ import annotations

import ctypes
import fcntl
import marshal
import os
import resource
import sys

from draftsman.sandbox import landlock, seccomp

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from typing import Any, NoReturn
else:  # `signal` itself imports `enum`
    import _signal as signal

SANDBOX_UID = 1000
"""User and group id inside a user namespace."""
CLONE_NEWNS = 0x20000
CLONE_NEWUSER = 0x10000000
CLONE_NEWIPC = 0x8000000
CLONE_NEWNET = 0x40000000
SIOCSIFFLAGS = 0x8914
IFF_UP_AND_RUNNING = 0x41
MS_BIND = 4096
MS_REC = 16384
MS_PRIVATE = 1 << 18
PR_SET_PDEATHSIG = 1
STAGE = "/mnt"
"""Mount point of the sources of bind mounts, in a private mount namespace."""
USERNS = 9
"""Descriptor of the user namespace, which bwrap leaves open."""
OUTPUT = 8
"""Descriptor of the output, which bwrap itself must not hold: the program may close it."""
ENVIRONMENT = "DRAFTSMAN_PROGRAM_ENVIRONMENT"
"""Variable with the program's environment, as `encode` returns it."""
FIRST_PORT_SOCKET = 10
"""First descriptor through which the sandbox sends a listening socket; after USERNS."""
NO_NAMESPACES = "this worker cannot create namespaces"
NO_MOUNTS = "this worker cannot create a mount namespace"
NO_CHANGE_OF_USER = "this worker cannot change to the user id"
LIMITED = 'exec 9<&- 1>&8 8>&-; ulimit -u "$0" 2>/dev/null || ulimit -p "$0"; exec "$@"'
"""Gives the program its output, and sets the process limit inside the namespace.

Outside, all processes of the user would count.
"""

_libc = ctypes.CDLL(None, use_errno=True)


def encode(content: dict[str, Any]) -> str:
    """Return a plan or an environment as an argument for the same interpreter.

    It is not JSON, whose parser takes milliseconds to import.
    """
    return marshal.dumps(content).hex()


def decode(text: str) -> dict[str, Any]:
    """Return the dictionary of `encode`, which comes from the worker alone."""
    content: dict[str, Any] = marshal.loads(bytes.fromhex(text))  # noqa: S302
    return content


def enter(plan: dict[str, Any], command: list[str]) -> NoReturn:
    """Confine this process by the plan and exec the command; raises OSError."""
    environment = decode(os.environ.pop(ENVIRONMENT))
    for kind, limit in ((resource.RLIMIT_CORE, 0), (resource.RLIMIT_FSIZE, plan["file_size"])):
        _limit(kind, limit)
    if plan["mode"] == "bwrap":
        _enter_bwrap(plan, command, environment)
    if plan["mode"] == "container":
        from draftsman.sandbox import container_client

        os._exit(container_client.run(plan, command, environment))
    if plan["mode"] == "user":
        _enter_namespaces(plan["network"])
        command = _with_ports(plan, command)
    _limit(resource.RLIMIT_DATA, plan["memory"])
    _limit(resource.RLIMIT_NPROC, plan["processes"] + (0 if plan["uid"] else _threads_of_user()))
    if plan["uid"] is not None:
        _make_reachable([*plan["read"], *plan["write"]])
    _change_user(plan["uid"])
    if plan["mode"] == "landlock":
        paths = plan["read"], plan["write"]
        landlock.restrict(
            *paths,
            network=plan["network"],
            ports=plan["ports"],
            own_port=plan["own_port"],
            listed=plan["listed"],
        )
    elif plan["mode"] == "user" and plan["landlock"]:
        landlock.restrict(plan["read"], plan["write"], network=True, listed=plan["listed"])
    if plan["seccomp"]:
        seccomp.apply(plan["seccomp"])
    os.execve(command[0], command, environment)  # noqa: S606


def _enter_bwrap(plan: dict[str, Any], command: list[str], environment: dict[str, str]) -> NoReturn:
    mounts = [tuple(mount) for mount in plan["mounts"]]
    command = _with_ports(plan, command)
    os.dup2(1, OUTPUT)
    os.set_inheritable(OUTPUT, True)
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.close(null)
    arguments = [plan["bwrap"], "--unshare-ipc", "--unshare-pid", "--unshare-uts"]
    arguments += ["--unshare-cgroup-try", "--die-with-parent", "--new-session"]
    arguments += ["--uid", str(SANDBOX_UID), "--gid", str(SANDBOX_UID), "--hostname", "draftsman"]
    if plan["network"]:
        _block_abstract_sockets()
    else:
        arguments.append("--unshare-net")
    if plan["uid"] is None:
        arguments += ["--unshare-user", "--disable-userns"]
    else:
        mounts = _stage_mounts(mounts)
        _drop_groups(plan["uid"])
        os.dup2(_user_namespace(plan["uid"]), USERNS)
        os.set_inheritable(USERNS, True)  # dup2 does nothing if it has this number already
        arguments += ["--userns", str(USERNS)]
    flags = {"ro": "--ro-bind", "rw": "--bind", "link": "--symlink"}
    steps = [(destination, [flags[kind], source]) for kind, source, destination in mounts]
    steps += [("/proc", ["--proc"]), ("/dev", ["--dev"])]
    in_memory = ["--size", str(plan["tmp"]), "--tmpfs"]
    steps += [("/tmp", in_memory), ("/dev/shm", in_memory)]  # noqa: S108
    # a folder comes before those in it, which it would hide: a checkout below /tmp
    for destination, step in sorted(steps, key=lambda item: _depth(item[0])):
        arguments += [*step, destination]
    for folder in ("/dev", "/"):  # both are in memory without a size limit
        arguments += ["--remount-ro", folder]
    if plan["seccomp"]:
        arguments += ["--seccomp", str(_file_in_memory("seccomp", plan["seccomp"]))]
    arguments += [
        "--args",
        str(_environment_arguments(environment)),
        "--chdir",
        plan["chdir"],
        "--",
    ]
    _limit(resource.RLIMIT_DATA, plan["memory"])
    shell = ["/bin/sh", "-c", LIMITED, str(plan["processes"])]
    os.execve(plan["bwrap"], [*arguments, *shell, *command], {})  # noqa: S606


def _depth(path: str) -> int:
    return len([part for part in path.split("/") if part])


def _with_ports(plan: dict[str, Any], command: list[str]) -> list[str]:
    """Return the command behind the program that opens its ports, if it has any."""
    if not plan["port_sockets"]:
        return command
    ports = [f"{_inheritable(socket)}:{port}" for socket, port in plan["port_sockets"]]
    return [*plan["port_opener"], ",".join(ports), *command]


def _enter_namespaces(network: bool) -> None:
    """Give this process its own System V IPC and, without the host's, its own network."""
    try:
        _check_call(_libc.unshare(CLONE_NEWIPC | (0 if network else CLONE_NEWNET)))
    except OSError as error:
        text = f"{NO_NAMESPACES} ({error.strerror}); CAP_SYS_ADMIN is required"
        raise OSError(text) from None
    if not network:
        _enable_loopback()


def _enable_loopback() -> None:
    import _socket

    client = _socket.socket(_socket.AF_INET, _socket.SOCK_DGRAM)
    request = b"lo".ljust(16, b"\0") + IFF_UP_AND_RUNNING.to_bytes(2, sys.byteorder)
    fcntl.ioctl(client.fileno(), SIOCSIFFLAGS, request.ljust(40, b"\0"))
    client.close()


def _inheritable(descriptor: int) -> int:
    """Return an inheritable copy of a descriptor."""
    return fcntl.fcntl(descriptor, fcntl.F_DUPFD, FIRST_PORT_SOCKET)


def _environment_arguments(environment: dict[str, str]) -> int:
    """Return a descriptor with arguments for bwrap: its command line is public."""
    arguments = [f"--setenv\0{name}\0{value}\0" for name, value in environment.items()]
    return _file_in_memory("environment", os.fsencode("".join(arguments)))


def _file_in_memory(name: str, content: bytes) -> int:
    """Return an inheritable descriptor from which the content can be read."""
    descriptor = os.memfd_create(name, 0)
    unwritten = memoryview(content)
    while unwritten:
        unwritten = unwritten[os.write(descriptor, unwritten) :]
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def _block_abstract_sockets() -> None:
    """Block the host's abstract sockets, if this kernel has Landlock for it."""
    if landlock.abi() >= landlock.OLDEST_ABI:
        landlock.scope()


def _limit(kind: int, limit: int) -> None:
    _, hard = resource.getrlimit(kind)
    limit = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
    resource.setrlimit(kind, (limit, limit))


def _change_user(uid: int | None) -> None:
    if uid is not None:
        _drop_groups(uid)
        try:
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)
        except OSError as error:
            raise OSError(f"{NO_CHANGE_OF_USER} {uid} ({error.strerror})") from None
        landlock.no_new_privileges()
        _check_call(
            _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        )  # a change of user clears it


def _drop_groups(uid: int) -> None:
    try:
        os.setgroups([])
    except OSError as error:
        raise OSError(f"{NO_CHANGE_OF_USER} {uid} ({error.strerror})") from None


def _threads_of_user() -> int:
    """Return the number of threads of this user, which RLIMIT_NPROC counts."""
    count = 0
    uid = os.getuid()
    for name in os.listdir("/proc"):  # noqa: PTH208
        if name.isdigit():
            try:
                if os.stat(f"/proc/{name}").st_uid == uid:  # noqa: PTH116
                    count += len(os.listdir(f"/proc/{name}/task"))  # noqa: PTH208
            except OSError:
                continue
    return count


def _stage_mounts(mounts: list[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
    """Bind every source below STAGE, where the run's user can reach it.

    Needs root, and works in a mount namespace of this process.
    """
    _unshare_mounts()
    opened = {source: os.open(source, os.O_PATH) for kind, source, _ in mounts if kind != "link"}
    _mount("tmpfs", STAGE, b"tmpfs", 0, b"mode=0755")
    staged = {}
    for number, (source, descriptor) in enumerate(opened.items()):
        staged[source] = os.path.join(STAGE, str(number))
        _bind(descriptor, staged[source])
    return [(kind, staged.get(source, source), inside) for kind, source, inside in mounts]


def _make_reachable(paths: list[str]) -> None:
    """Replace folders that the run's user cannot enter by mounts of these paths; needs root."""
    blocked = {path: folder for path in paths if (folder := _blocked_parent(path)) is not None}
    if not blocked:
        return
    try:
        _unshare_mounts()
    except OSError:
        folder = min(blocked.values())
        text = (
            f"the user of the run cannot enter {folder}; move data_dir, or run: chmod o+x {folder}"
        )
        raise OSError(text) from None
    opened = {path: os.open(path, os.O_PATH) for path in blocked}
    for folder in sorted(set(blocked.values())):
        _mount("tmpfs", folder, b"tmpfs", 0, b"mode=0755")
    for path, descriptor in sorted(opened.items()):
        if not os.path.lexists(path):
            _bind(descriptor, path)


def _blocked_parent(path: str) -> str | None:
    """Return the topmost parent of an existing path that other users cannot enter."""
    if not os.path.exists(path):  # noqa: PTH110
        return None
    parent = os.path.dirname(path)  # noqa: PTH120
    blocked = None
    while parent != "/":
        if not os.stat(parent).st_mode & 0o001:  # noqa: PTH116
            blocked = parent
        parent = os.path.dirname(parent)  # noqa: PTH120
    return blocked


def _unshare_mounts() -> None:
    try:
        _check_call(_libc.unshare(CLONE_NEWNS))
    except OSError as error:
        raise OSError(f"{NO_MOUNTS} ({error.strerror})") from None
    _mount("none", "/", None, MS_REC | MS_PRIVATE)


def _bind(descriptor: int, target: str) -> None:
    source = f"/proc/self/fd/{descriptor}"
    if os.path.isdir(source):  # noqa: PTH112
        os.makedirs(target, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(target), exist_ok=True)  # noqa: PTH120
        open(target, "wb").close()
    _mount(source, target, None, MS_BIND | MS_REC)
    os.close(descriptor)


def _user_namespace(uid: int) -> int:
    """Return a descriptor of a user namespace with one user and no nested namespaces."""
    ready_read, ready_write = os.pipe()
    continue_read, continue_write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(continue_write)
            _check_call(_libc.unshare(CLONE_NEWUSER))
            os.write(ready_write, b"1")
            os.read(continue_read, 1)
            with open("/proc/sys/user/max_user_namespaces", "w") as file:
                file.write("0")
            os.write(ready_write, b"2")
            os.read(continue_read, 1)
        finally:
            os._exit(0)
    os.close(ready_write)
    try:
        if not os.read(ready_read, 1):
            raise OSError("this kernel does not allow user namespaces")
        for name in ("uid_map", "gid_map"):
            with open(f"/proc/{child}/{name}", "w") as file:
                file.write(f"{SANDBOX_UID} {uid} 1\n")
        os.write(continue_write, b"1")
        if not os.read(ready_read, 1):
            raise OSError("nested user namespaces cannot be disabled")
        namespace = os.open(f"/proc/{child}/ns/user", os.O_RDONLY)
    finally:
        os.close(continue_write)
        os.waitpid(child, 0)
    return namespace


def _mount(source: str, target: str, kind: bytes | None, flags: int, data: bytes = b"") -> None:
    _check_call(_libc.mount(source.encode(), target.encode(), kind, flags, data or None))


def _check_call(result: int) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def main(arguments: list[str]) -> NoReturn:
    """Confine this process by a plan and run the command; for probes, without a guard."""
    plan = decode(arguments[0])
    command = arguments[1:]
    try:
        enter(plan, command)
    except OSError as error:
        sys.exit(
            f"{error.filename} cannot be started: {error.strerror}"
            if error.filename
            else str(error)
        )
