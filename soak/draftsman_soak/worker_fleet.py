"""Worker processes: the first under `draftsman up`, the others started directly.

The second reaches the database through a network that can be silent, and sends its short statements
through a pooler. The last alone handles the rare type, and sees a clock of the host that is
stepped; agents are confined less strictly there, since bubblewrap mounts no /proc where a part of
/proc is hidden.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import psutil

from draftsman.processes.shutdown import blocked
from draftsman_soak.host_clock import HostClock
from draftsman_soak.ledger import Ledger
from draftsman_soak.pooler import Pooler
from draftsman_soak.seed_environment import TEMPORARY, SeedEnvironment
from draftsman_soak.silent_network import SilentNetwork
from draftsman_tui.terminal.own_command import DRAFTSMAN_COMMAND

WATCH: Final = 0.3
"""Seconds between two checks for exited workers."""
END: Final = 30.0
"""Seconds after SIGTERM within which a worker must exit."""
SKEW: Final = 400_000
"""Seconds by which the monotonic clock of a time namespace is ahead."""
TIME_NAMESPACE: Final = (
    "unshare",
    "--time",
    f"--monotonic={SKEW}",
    f"--boottime={SKEW}",
    "--",
)


def lacks_time_namespace() -> str | None:
    """Return why this machine cannot create time namespaces, or None if it can."""
    try:
        result = subprocess.run(
            [*TIME_NAMESPACE, "true"], capture_output=True, text=True, stdin=subprocess.DEVNULL
        )
    except OSError as error:
        return f"unshare: {error.strerror}"
    if result.returncode == 0:
        return None
    lines = result.stderr.strip().splitlines() or [f"exit code {result.returncode}"]
    return lines[0].removeprefix("unshare: ").removeprefix("unshare failed: ")


class WorkerSlot:
    """A worker process that is restarted whenever it exits."""

    def __init__(
        self,
        number: int,
        config: Path,
        ledger: Ledger,
        *,
        network: SilentNetwork | None,
        pooler: Pooler | None,
        host_clock: HostClock | None,
    ) -> None:
        self.supervised = number == 0
        self.network = network
        """The network between the worker and the database; None for the server's socket."""
        self.pooler = pooler
        """The pooler before that network, if the worker uses one."""
        self.other_clock = False
        """Whether the worker is started in a time namespace."""
        self.process: subprocess.Popen[bytes] | None = None
        self._config = config
        self._host_clock = host_clock
        self._ledger = ledger
        self._log = config.with_name(f"worker-{number + 1}.log")
        self.is_stopping = False
        """Whether the worker was asked to stop, or killed, and is not yet restarted."""
        self.is_away = False
        """Whether the worker is not restarted for a while."""

    def start(self) -> None:
        """Start the worker, which ends with this process."""
        wrapper = list(TIME_NAMESPACE if self.other_clock else ())
        if self._host_clock is not None:
            wrapper += self._host_clock.wrapper()
        environment = {**os.environ, "TMPDIR": str(self._config.with_name(TEMPORARY))}
        if self.network is not None:
            environment["DRAFTSMAN_DATABASE_URL"] = self.network.url
        if self.network is not None and self.pooler is not None:
            environment["DRAFTSMAN_DATABASE_URL"] = self.pooler.url
            environment["DRAFTSMAN_LISTEN_URL"] = self.network.url
        draftsman = [*wrapper, *DRAFTSMAN_COMMAND, "--config", str(self._config)]
        command = (
            ["up", "--headless", "--attached"]
            if self.supervised
            else ["worker", "--parent", str(os.getpid())]
        )
        with self._log.open("ab") as log, blocked():
            self.process = subprocess.Popen(
                [*draftsman, *command],
                stdin=subprocess.PIPE if self.supervised else subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment,
                start_new_session=True,
            )
        self.is_stopping = False

    def worker(self) -> psutil.Process | None:
        """Return the worker process, a child of `up` if supervised; None if there is none."""
        if self.process is None or self.process.poll() is not None:
            return None
        with contextlib.suppress(psutil.Error):
            top = psutil.Process(self.process.pid)
            for process in top.children() if self.supervised else [top]:
                if "worker" in process.cmdline():
                    return process
        return None

    def agents(self) -> list[psutil.Process]:
        """Return the agents of the worker; each is the child of a guard."""
        agents: list[psutil.Process] = []
        with contextlib.suppress(psutil.Error):
            worker = self.worker()
            for guard in worker.children() if worker else ():
                if any("draftsman.sandbox.processes.guard" in word for word in guard.cmdline()):
                    agents += guard.children()
        return agents

    def kill(self) -> None:
        """Kill the worker, or its supervisor."""
        self.is_stopping = True
        if self.process is not None:
            self.process.kill()

    def terminate(self) -> None:
        """Request a stop."""
        self.is_stopping = True
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)

    async def end(self) -> int | None:
        """Wait for the exit; return the exit code, or None if the process was killed."""
        if self.process is None:
            return 0
        try:
            return await asyncio.to_thread(self.process.wait, END)
        except subprocess.TimeoutExpired:
            self.kill()
            return None

    def refill(self) -> None:
        """Restart an exited worker, and record an unexpected exit."""
        if self.is_away or self.process is None or (code := self.process.poll()) is None:
            return
        if not self.is_stopping:
            self._ledger.exits[code] += 1
        self.start()
        self._ledger.restarts += 1


class WorkerFleet:
    """All worker slots."""

    def __init__(
        self,
        count: int,
        place: SeedEnvironment,
        ledger: Ledger,
        *,
        network: SilentNetwork,
        pooler: Pooler | None,
        host_clock: HostClock | None,
    ) -> None:
        self.slots: Sequence[WorkerSlot] = [
            WorkerSlot(
                number,
                place.rare_config if number == count - 1 else place.config,
                ledger,
                network=network if number == 1 else None,
                pooler=pooler if number == 1 else None,
                host_clock=host_clock if number == count - 1 else None,
            )
            for number in range(count)
        ]
        self._ledger = ledger

    @property
    def rare(self) -> WorkerSlot:
        """The only worker that handles the rare type."""
        return self.slots[-1]

    @property
    def remote(self) -> WorkerSlot | None:
        """The worker behind the network, None in a fleet of one."""
        return next((slot for slot in self.slots if slot.network is not None), None)

    def start(self) -> None:
        """Start every worker."""
        for slot in self.slots:
            slot.start()

    async def run(self) -> None:
        """Restart exited workers and poolers, until canceled."""
        while True:
            for slot in self.slots:
                slot.refill()
                if slot.pooler is not None:
                    slot.pooler.refill()
            await asyncio.sleep(WATCH)

    async def stop(self) -> None:
        """Stop all workers; record those that fail or do not exit in time."""
        for slot in self.slots:
            slot.terminate()
        for index, code in enumerate(await asyncio.gather(*(slot.end() for slot in self.slots))):
            if code != 0:
                problem = (
                    f"exited with {code}"
                    if code is not None
                    else f"did not exit within {END:.0f} s"
                )
                self._ledger.unexpected_errors.append(f"worker {index + 1} {problem} after SIGTERM")
