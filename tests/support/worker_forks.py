"""Processes of pytest-xdist, forked from a process that has imported the product and the tests.

    pytest ── before its first thread ─┬▶ importer ── for each worker ──▶ worker ──▶ fork server
                                       ├▶ compiler                                  (of commands)
                                       └▶ a process that prepares the server

Each worker would import it again, and so would the fork server of each worker. In a new checkout
each would also compile it. While the importer uses one core, the other two use another.
"""

from __future__ import annotations

import functools
import os
import socket
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from _pytest.assertion import rewrite
from _pytest.assertion.rewrite import assertstate_key
from _pytest.pathlib import ImportMode, import_path

from tests.support import fork_server


def start_importer(config: pytest.Config) -> socket.socket | None:
    """Fork the importer, if the session has workers; return the connection to it."""
    if not _has_workers(config):
        return None
    assert threading.active_count() == 1
    in_child(config, functools.partial(_compile_tests, config))
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    if (importer := os.fork()) > 0:
        theirs.close()
        config.add_cleanup(functools.partial(_end, ours, importer))
        return ours
    try:
        ours.close()
        with warnings.catch_warnings():
            fork_server.import_product()
            _import_tests(config)
        fork_server.serve(theirs)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(0)


def in_child(config: pytest.Config, work: Callable[[], None]) -> None:
    """Do the work in a child process, if the session has workers; its result is in files."""
    if not _has_workers(config):
        return
    assert threading.active_count() == 1
    if (child := os.fork()) > 0:
        config.add_cleanup(functools.partial(_wait, child))
        return
    try:
        work()
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(0)


def _wait(child: int) -> None:
    os.waitpid(child, 0)


def _has_workers(config: pytest.Config) -> bool:
    return bool(config.getoption("tx", None)) and config.getoption("dist", "no") != "no"


def _end(connection: socket.socket, importer: int) -> None:
    connection.close()
    os.waitpid(importer, 0)


def _compile_tests(config: pytest.Config) -> None:
    """Compile the tests of a new checkout, last first, until the importer has done the others."""
    state = config.stash[assertstate_key]
    for path in reversed([*_files(config.args)]):
        folder = rewrite.get_cache_dir(path)
        compiled = folder / (path.stem + rewrite.PYC_TAIL)
        if compiled.exists():
            return
        source, code = rewrite._rewrite_test(path, config)
        folder.mkdir(exist_ok=True)
        rewrite._write_pyc(state, code, source, compiled)


def _import_tests(config: pytest.Config) -> None:
    """Import the tests as collection does; workers repeat failed imports and report them."""
    warnings.simplefilter("error")
    for path in _files(config.args):
        before = set(sys.modules)
        try:
            import_path(
                path,
                mode=ImportMode.importlib,
                root=config.rootpath,
                consider_namespace_packages=False,
            )
        except Exception:
            for name in set(sys.modules) - before:
                del sys.modules[name]


def _files(args: list[str]) -> Iterator[Path]:
    for arg in args:
        path = Path(arg.partition("::")[0]).absolute()
        yield from sorted(path.rglob("test_*.py")) if path.is_dir() else [path]
