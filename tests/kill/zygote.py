"""A process that has imported everything and forks a process for each kill: 10 ms, not 1 s.

It forks before it has an event loop or a thread. Started by `tests.kill.processes`.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import signal
import socket
import sys
from contextlib import suppress
from typing import Any, Final

from draftsman import worker_main
from draftsman.agent_runs.session import agent_session
from draftsman.database import migrate
from draftsman.errors import DraftsmanError
from draftsman.settings import settings_model
from tests.kill import clients
from tests.kill.kill_points import all_points
from tests.kill.probe import Probe

ENDED: Final = b'{"points": ["end"], "stop": false, "backends": []}\n'
MOST: Final = 1 << 20
"""Maximum bytes of an order."""


def main() -> None:
    """Fork a process for each order until the test closes the connection."""
    orders = socket.socket(fileno=int(sys.argv[1]))
    all_points()  # read the sources once, not in each process
    gc.freeze()
    while True:
        data, files, _, _ = socket.recv_fds(orders, MOST, 1)
        _reap()
        if not data:
            return
        pid = os.fork()
        if pid == 0:
            orders.close()
            _begin(json.loads(data), socket.socket(fileno=files[0]))
        os.close(files[0])
        orders.sendall(pid.to_bytes(4, "big"))


def _reap() -> None:
    """Reap dead processes, so that their resource usage is counted."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _begin(order: dict[str, Any], channel: socket.socket) -> None:
    code = 1
    try:
        log = os.open(order["log"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.dup2(log, 1)
        os.dup2(log, 2)
        agent_session.PARK_TIMEOUT = agent_session.TERMINATE_TIMEOUT = 0.2  # type: ignore[misc]
        migrate.LOCK_TIMEOUT = migrate.RETRY_DELAY = 0.1  # type: ignore[misc]
        Probe(channel, set(order["pending"])).install()
        code = asyncio.run(_work(order))
        channel.sendall(ENDED)
    except DraftsmanError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)  # noqa: T201
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stderr.flush()
        os._exit(code)


def _report() -> None:
    """Print the stack of every task, on SIGUSR1, when the process hangs."""
    for task in asyncio.all_tasks():
        task.print_stack()


async def _work(order: dict[str, Any]) -> int:
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, _report)
    settings = settings_model().model_validate(order["settings"])
    if order["role"] == "worker":
        from draftsman import log

        log.setup(settings.log)
        return await worker_main.run_worker(settings)
    await clients.SCRIPTS[order["role"]](settings, order["jobs"])
    return 0


if __name__ == "__main__":
    main()
