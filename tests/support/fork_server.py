"""Starts `python -m draftsman_tui …` by a fork of a process that has imported draftsman.

    subprocess.Popen ── arguments, environment, files ──▶ server ──▶ command
                     ◀────────────── process ID ─────────────┘

A new interpreter needs 0.5 s of CPU for imports, a fork 10 ms. The command is a child of the test
process, as after `exec`: a sibling of the server. Popen starts an interpreter where a fork would
differ: for the installed script, for a shell, for options other than those of SUPPORTED, for
another encoding; and where the environment has NEW_INTERPRETER. The child processes that check
JSON Schemas are forked too, with the limits that they set themselves.

A command that starts other commands (STARTERS) has a fork server too: a fork of itself, made before
it ran anything.
"""

from __future__ import annotations

import atexit
import ctypes
import faulthandler
import fcntl
import functools
import gc
import inspect
import io
import json
import os
import pkgutil
import runpy
import signal
import site
import socket
import subprocess
import sys
import tempfile
import termios
import threading
import time
import traceback
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Final, TypeVar

import psutil
from execnet.gateway_io import popen_bootstrapline
from pydantic import BaseModel

from draftsman.json_schemas import checker_process
from draftsman.resources import module_command
from draftsman.settings import settings_model
from tests.support import shifted_clock
from tests.support.distributions import forget
from tests.support.sibling_fork import fork_sibling, use_huge_pages
from tests.support.worker_process import forget_tests, leave_pytest

T = TypeVar("T")
ROOT: Final = Path(__file__).parents[2]
PACKAGES: Final = (
    "draftsman",
    "draftsman_agents",
    "draftsman_bots",
    "draftsman_soak",
    "draftsman_tui",
)
FORKED: Final = {*PACKAGES, "bench", "tests"}
SUPPORTED: Final = (("-m",), ("-P", "-m"))
"""Options of the interpreter for which a fork does the same as a new interpreter."""
CHECKER: Final = checker_process.__name__
SCHEMA_CHECKER: Final = [*module_command(CHECKER)]
"""Command that checks JSON Schemas, whose imports take 0.1 s of CPU."""
NEW_INTERPRETER: Final = "TESTS_NEW_INTERPRETER"
"""Variable of commands whose imports are tested, or of the process that starts them."""
CONTROLLING_TERMINAL: Final = """import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.argv[1], sys.argv[1:])"""
"""Program that makes its terminal the controlling terminal and executes its arguments."""
STARTERS: Final = {"demo", "up"}
"""Commands that start other commands."""
WORKER: Final = "tests.support.worker_process"
"""Module of the processes of pytest-xdist, which also start commands."""
INTERPRETER_VARIABLES: Final = ("LANG", "LC_", "PYTHON", "TEXTUAL", "MALLOC_", "LD_")
"""Beginnings of variables that are read when an interpreter starts or a module is imported."""
TAKEN_OVER: Final = ("PYTHONFAULTHANDLER", "PYTHONHASHSEED", "PYTHONPATH")
"""Those that a fork takes over, or that make no difference."""
DEFAULTS: Final[dict[str, Any]] = {
    "executable": None,
    "preexec_fn": None,
    "close_fds": True,
    "pass_fds": (),
    "shell": False,
    "restore_signals": True,
    "gid": None,
    "gids": None,
    "uid": None,
    "umask": -1,
    "process_group": -1,
}
"""Parameters of Popen that a fork supports with these values only."""
PIPES: Final = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")
MAX_ORDER: Final = 1 << 20
"""Maximum size of an order in bytes."""
PR_SET_NAME: Final = 15
NAME: Final = "fork-server"
"""Name of the process of a command's fork server."""
_libc: Final = ctypes.CDLL(None, use_errno=True)
_execute_child: Final[Any] = subprocess.Popen._execute_child  # type: ignore[attr-defined]


class ForkServer:
    """The server of a process, started with the first command unless `connection` leads to it."""

    def __init__(self, connection: socket.socket | None = None) -> None:
        self._lock = threading.Lock()
        self._socket = connection

    def start(self, order: dict[str, Any], files: list[int]) -> int:
        """Start a command as a child of this process; return its process ID."""
        with self._lock:
            connection = self._socket = self._socket or _start_server()
            socket.send_fds(connection, [json.dumps(order).encode()], files)
            reply = connection.recv(4)
        assert reply, "the fork server ended"
        return int.from_bytes(reply, "big")


def _start_server() -> socket.socket:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        command = [sys.executable, "-P", "-m", __name__, str(theirs.fileno())]
        env = {**os.environ, "PYTHONPATH": str(ROOT)}
        process = subprocess.Popen(command, env=env, pass_fds=[theirs.fileno()])
    atexit.register(functools.partial(end_server, ours, process))
    return ours


def end_server(connection: socket.socket, process: subprocess.Popen[bytes]) -> None:
    """Wait for the end of a server, which ends with its connection."""
    connection.close()
    process.wait()


def children(pid: int, *, recursive: bool = False) -> list[psutil.Process]:
    """Return the child processes of a command, without its fork server."""
    everything: list[psutil.Process] = psutil.Process(pid).children(recursive=recursive)
    return [process for process in everything if process.name() != NAME]


def install(connection: socket.socket | None = None) -> None:
    """Let `subprocess.Popen` of this process use a server: its own, or the one connected to."""
    if connection is None and subprocess.Popen._execute_child is not _execute_child:  # type: ignore[attr-defined]
        return
    server = ForkServer(connection)
    signature = inspect.signature(_execute_child)

    @functools.wraps(_execute_child)
    def execute(popen: Any, *positional: Any) -> None:
        command = _arguments(positional[0])
        given = {} if command is None else signature.bind(popen, *positional).arguments
        env = os.environ if given.get("env") is None else given["env"]
        if command is None or _differs(command, given, env):
            _execute_child(popen, *positional)
            return
        sys.audit("subprocess.Popen", sys.executable, given["args"], given["cwd"], given["env"])
        files = [given["p2cread"], given["c2pwrite"], given["errwrite"]]
        popen.pid = server.start(
            {
                **command,
                "cwd": str(Path.cwd() / os.fsdecode(given["cwd"] or "")),
                "env": {os.fsdecode(key): os.fsdecode(value) for key, value in env.items()},
                "session": bool(given["start_new_session"]),
                "umask": _umask(),
                "ignored": [
                    number
                    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)
                    if signal.getsignal(number) is signal.SIG_IGN
                ],
                "blocked": [int(number) for number in signal.pthread_sigmask(signal.SIG_BLOCK, ())],
            },
            [file if file >= 0 else own for own, file in enumerate(files)],
        )
        popen._child_created = True
        popen._close_pipe_fds(*(given[name] for name in PIPES))

    subprocess.Popen._execute_child = execute  # type: ignore[attr-defined]


def _arguments(args: Any) -> dict[str, Any] | None:
    """Return the arguments of the module and how it is started; None for another program."""
    if isinstance(args, (str, bytes, os.PathLike)):
        return None
    args = [os.fsdecode(part) for part in args]
    if args == [sys.executable, "-u", "-c", popen_bootstrapline]:
        return {"module": WORKER, "args": [], "safe_path": False, "controlling": False}
    if args[: len(SCHEMA_CHECKER)] == SCHEMA_CHECKER:
        rest = args[len(SCHEMA_CHECKER) :]
        return {"module": CHECKER, "args": rest, "safe_path": True, "controlling": False}
    controlling = args[1:3] == ["-c", CONTROLLING_TERMINAL]
    command = args[3:] if controlling else args
    for options in SUPPORTED:
        count = len(options) + 1
        before, (module, *rest) = command[:count], command[count:] or [""]
        if before == [sys.executable, *options] and module.split(".")[0] in (
            *PACKAGES,
            "bench",
            "tests",
        ):
            safe = options[0] == "-P"
            return {"module": module, "args": rest, "safe_path": safe, "controlling": controlling}
    return None


def _differs(command: dict[str, Any], given: dict[str, Any], env: Mapping[Any, Any]) -> bool:
    """Return whether a fork cannot meet the options of the caller of Popen."""
    isolated = command["module"] == CHECKER  # no variable is read
    return (
        any(given[name] != value for name, value in DEFAULTS.items())
        or NEW_INTERPRETER in env
        or NEW_INTERPRETER in os.environ
        or (not isolated and _interpreter_variables(env) != _interpreter_variables(os.environ))
    )


def _interpreter_variables(env: Mapping[Any, Any]) -> dict[str, str]:
    variables = {os.fsdecode(key): os.fsdecode(value) for key, value in env.items()}
    return {
        name: value
        for name, value in variables.items()
        if name.startswith(INTERPRETER_VARIABLES) and name not in TAKEN_OVER
    }


def _umask() -> int:
    os.umask(mask := os.umask(0o077))
    return mask


def main() -> None:
    """Import everything, and serve the test process."""
    connection = socket.socket(fileno=int(sys.argv[1]))
    if shifted_clock.VARIABLE in os.environ:
        shifted_clock.install()
    import_product()
    sys.path.remove(str(ROOT))
    use_huge_pages()
    serve(connection)


def import_product() -> None:
    """Import every module and what a check of a schema imports, and build the deferred models."""
    import_module("jsonschema")
    for package in PACKAGES:
        for module in pkgutil.walk_packages(import_module(package).__path__, f"{package}."):
            if not module.name.endswith("__main__"):
                import_module(module.name)
    settings_model()
    for model in _subclasses(BaseModel):
        model.model_rebuild()


def _subclasses(kind: type[T]) -> Iterator[type[T]]:
    for subclass in kind.__subclasses__():
        yield subclass
        yield from _subclasses(subclass)


def serve(connection: socket.socket) -> None:
    """Fork a command for each order, from all that was imported, until the other end is closed."""
    assert threading.active_count() == 1
    gc.collect()
    gc.freeze()
    _serve(connection)


def _serve(connection: socket.socket) -> None:
    """Fork a command for each order until the other end is closed.

    A command inherits blocked signals: what is sent before it has its own mask is not lost.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGHUP, signal.SIGINT, signal.SIGTERM))
    while True:
        order, files, _, _ = socket.recv_fds(connection, MAX_ORDER, 3)
        if not order:
            return
        pid = _fork(json.loads(order), files, connection)
        for number in files:
            os.close(number)
        connection.send(pid.to_bytes(4, "big"))


def _fork(order: dict[str, Any], files: list[int], connection: socket.socket) -> int:
    """Fork a command as a child of the test process; return its process ID."""
    pid = fork_sibling()
    if pid == 0:
        connection.close()
        _run(order, files)
    return pid


def _run(order: dict[str, Any], files: list[int]) -> None:
    """Give this process the state of a new interpreter, and run the command."""
    code = 1
    try:
        _libc.prctl(PR_SET_NAME, b"python", 0, 0, 0)
        if order["session"]:
            os.setsid()
        worker = order["module"] == WORKER
        if worker:
            leave_pytest()
        starts = worker or STARTERS.intersection(order["args"])
        connection = _fork_server(files, of_worker=worker) if starts else None
        _prepare(order, files, connection)
        try:
            if order["module"] == CHECKER:
                code = checker_process.main(order["args"])
            else:
                sys.modules.pop(order["module"], None)  # as a new interpreter has it
                runpy.run_module(order["module"], run_name="__main__", alter_sys=True)
                code = 0
        except SystemExit as end:
            code = _exit_code(end.code)
        except KeyboardInterrupt:
            traceback.print_exc()
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            sys.stderr.flush()
            os.kill(os.getpid(), signal.SIGINT)
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
    except BaseException:
        traceback.print_exc()
    finally:
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        except (OSError, ValueError):
            code = 120
        os._exit(code)


def _exit_code(code: Any) -> int:
    if code is None or isinstance(code, int):
        return (code or 0) & 0xFF
    print(code, file=sys.stderr)  # noqa: T201
    return 1


def _fork_server(files: list[int], *, of_worker: bool) -> socket.socket:
    """Fork a server for the commands that this process will start; return the connection to it."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    if os.fork() > 0:
        theirs.close()
        return ours
    ours.close()
    _libc.prctl(PR_SET_NAME, NAME.encode(), 0, 0, 0)
    for file in files:  # an end kept open would hide the end of a pipe
        os.close(file)
    if of_worker:
        forget_tests(ROOT)
        use_huge_pages()
    _serve(theirs)
    os._exit(0)


def _prepare(order: dict[str, Any], files: list[int], connection: socket.socket | None) -> None:
    high = [fcntl.fcntl(number, fcntl.F_DUPFD, 10) for number in files]
    for number, file in enumerate(high):
        os.dup2(file, number)
    last = max(high + files) + 64
    if connection is None:
        os.closerange(3, last)
    else:
        os.closerange(3, connection.fileno())
        os.closerange(connection.fileno() + 1, last)
        install(connection)
    if order["controlling"]:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    os.umask(order["umask"])
    os.chdir(order["cwd"])
    os.environ.clear()
    os.environ.update(order["env"])
    time.tzset()
    tempfile.tempdir = None  # TMPDIR is read again
    for number in (signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in order["ignored"]:
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_SETMASK, order["blocked"])
    atexit._clear()
    path = order["env"].get("PYTHONPATH", "").split(os.pathsep)
    first = [] if order["safe_path"] else [order["cwd"]]
    sys.path[:0] = [*first, *filter(None, path)]
    if any(path):
        forget()  # there may be other plugins
    sys.argv = ["-m", *order["args"]]
    unbuffered = bool(os.environ.get("PYTHONUNBUFFERED"))
    if os.environ.get("PYTHONFAULTHANDLER"):
        faulthandler.enable()
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        stream = _text_stream(number, getattr(sys, f"__{name}__"), unbuffered)
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    sys.modules.pop("sitecustomize", None)  # Debian has its own, which PYTHONPATH may replace
    site.execsitecustomize()


def _text_stream(number: int, former: io.TextIOWrapper, unbuffered: bool) -> io.TextIOWrapper:
    """Return a standard stream as CPython's `create_stdio` makes it."""
    mode = "rb" if number == 0 else "wb"
    buffering = 0 if unbuffered and number > 0 else -1
    raw: Any = open(number, mode, buffering, closefd=False)  # noqa: SIM115
    return io.TextIOWrapper(
        raw,
        encoding=former.encoding,
        errors=former.errors,
        newline="\n",
        line_buffering=not unbuffered and (os.isatty(number) or number == 2),
        write_through=unbuffered,
    )


if __name__ == "__main__":
    main()
