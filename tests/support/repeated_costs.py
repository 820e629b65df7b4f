"""Results that libraries compute again for each client and each event loop, computed once."""

from __future__ import annotations

import asyncio
import functools
import gc
import os
import signal
import ssl
import sys
from collections.abc import Callable, Mapping
from typing import Any, Final

import httpx
import hypothesis
import psycopg
from httpx._transports import default
from hypothesis.internal.conjecture import providers
from psycopg.adapt import AdaptersMap
from psycopg.types.enum import EnumInfo

from draftsman.database import database
from draftsman.database.database import Enums

TRUST: Final = ("SSL_CERT_FILE", "SSL_CERT_DIR")
"""Variables that name other certificates than those of certifi."""
QUICK: Final = "draftsman"
"""Name of the profile of Hypothesis for `make test`."""


def collect_less_garbage() -> None:
    """Look for garbage less often, in this process and its forks."""
    gc.set_threshold(100_000, 20, 10)


def avoid_repeated_costs() -> None:
    """Share these results in this process from now on."""
    _share_tls_contexts()
    _share_adapters()
    _keep_handlers_of_signals()
    _wait_without_threads()
    _read_no_constants()
    # httpcore imports it for each request; an import that fails searches each folder again
    sys.modules.setdefault("sniffio", None)  # type: ignore[arg-type]


def _share_tls_contexts() -> None:
    """Load the trusted certificates once instead of 30 ms for each HTTP client."""
    create = httpx.create_ssl_context

    @functools.cache
    def shared(trust_env: bool, *_trust: str | None) -> ssl.SSLContext:
        return create(trust_env=trust_env)

    def create_ssl_context(
        verify: Any = True, cert: Any = None, trust_env: bool = True
    ) -> ssl.SSLContext:
        if verify is not True or cert is not None:
            return create(verify=verify, cert=cert, trust_env=trust_env)
        return shared(trust_env, *map(os.environ.get, TRUST))

    default.create_ssl_context = create_ssl_context  # type: ignore[attr-defined]


def _share_adapters() -> None:
    """Register the enums of a schema once instead of twice for each database that is opened.

    Databases of tests are copies of a template, with the same object IDs.
    """
    register = database._register_enums
    registered: dict[tuple[object, ...], AdaptersMap] = {}

    def register_enums(infos: Mapping[str, EnumInfo], enums: Enums, adapters: AdaptersMap) -> None:
        key = (*enums, *((info.oid, info.array_oid, *info.labels) for info in infos.values()))
        if key not in registered:
            registered[key] = AdaptersMap(psycopg.adapters)
            register(infos, enums, registered[key])
        AdaptersMap.__init__(adapters, registered[key])

    database._register_enums = register_enums


def _keep_handlers_of_signals() -> None:
    """Return a handler as it is, as later Pythons do.

    Python 3.11 looks for it among the numbers first, and fails with its `repr`: for each run of an
    event loop, that of all that a fixture returned.
    """
    convert = signal._int_to_enum  # type: ignore[attr-defined]

    def int_to_enum(value: Any, klass: Any) -> Any:
        return convert(value, klass) if isinstance(value, int) else value

    signal._int_to_enum = int_to_enum  # type: ignore[attr-defined]


def _wait_without_threads() -> None:
    """Wait for child processes through file descriptors, as later Pythons do.

    Python 3.11 starts a thread for each child process, which costs as much as most git commands.
    """
    if sys.version_info < (3, 12) and hasattr(os, "pidfd_open"):
        asyncio.set_child_watcher(_ChildWatcher())


if sys.version_info < (3, 12):

    class _ChildWatcher(asyncio.PidfdChildWatcher):
        """Watches in the event loop that started the child, of any thread, as later Pythons do."""

        def attach_loop(self, loop: object) -> None:
            pass

        def is_active(self) -> bool:
            return True

        def add_child_handler(
            self, pid: int, callback: Callable[..., object], *args: object
        ) -> None:
            loop: Any = asyncio.get_running_loop()
            pidfd = os.pidfd_open(pid)

            def reap() -> None:
                loop._remove_reader(pidfd)
                os.close(pidfd)
                try:
                    _, status = os.waitpid(pid, 0)
                except ChildProcessError:
                    status = 255 << 8
                callback(pid, os.waitstatus_to_exitcode(status), *args)

            loop._add_reader(pidfd, reap)


def _read_no_constants() -> None:
    """Let Hypothesis make no examples of the constants of all modules, except in `make soak`.

    It parses each module for them before the first test. With them, a change of any module also
    changes the examples of all quick tests.
    """
    read = providers._get_local_constants

    def constants() -> Any:
        if hypothesis.settings.get_current_profile_name() == QUICK:
            return providers._local_constants
        return read()

    providers._get_local_constants = constants
