"""Processes of pytest-xdist, forked from a process that has imported the product and the tests.

    pytest ── before its first thread ──▶ importer ── for each worker ──▶ worker ──▶ fork server
                                                                                    (of commands)

Each worker would import it again, and so would the fork server of each worker. In a new checkout
each would also compile it.
"""

from __future__ import annotations

import functools
import os
import socket
import sys
import threading
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from _pytest.pathlib import ImportMode, import_path
from hypothesis.internal.conjecture import providers

from tests.support import fork_server


def start_importer(config: pytest.Config) -> socket.socket | None:
    """Fork the importer, if the session has workers; return the connection to it."""
    if not config.getoption("tx", None) or config.getoption("dist", "no") == "no":
        return None
    assert threading.active_count() == 1
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


def _end(connection: socket.socket, importer: int) -> None:
    connection.close()
    os.waitpid(importer, 0)


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
    # constants of all modules, from which Hypothesis also makes examples; it warns of the cost
    warnings.simplefilter("ignore")
    providers._get_local_constants()


def _files(args: list[str]) -> Iterator[Path]:
    for arg in args:
        path = Path(arg.partition("::")[0]).absolute()
        yield from sorted(path.rglob("test_*.py")) if path.is_dir() else [path]
