"""The worker processes: started as `up` starts them, one of them by `up` itself."""

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

from draftsman.shutdown import blocked
from draftsman_soak.ledger import Ledger
from draftsman_soak.seed_environment import TEMPORARY
from draftsman_tui.common.own_command import DRAFTSMAN_COMMAND

WATCH: Final = 0.3
"""Seconds between two looks whether a worker ended by itself."""
END: Final = 30.0
"""Seconds after SIGTERM in which a worker must have ended."""
SKEW: Final = 400_000
"""Seconds by which the monotonic clocks of a time namespace are ahead."""
TIME_NAMESPACE: Final = (
    *("unshare", "--time", f"--monotonic={SKEW}", f"--boottime={SKEW}"),
    "--",
)


def lacks_time_namespace() -> str | None:
    """Return why no process can have a monotonic clock of its own here, None if it can."""
    try:
        done = subprocess.run(
            [*TIME_NAMESPACE, "true"], capture_output=True, text=True, stdin=subprocess.DEVNULL
        )
    except OSError as error:
        return f"unshare: {error.strerror}"
    if done.returncode == 0:
        return None
    said = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
    return said[0].removeprefix("unshare: ").removeprefix("unshare failed: ")


class WorkerSlot:
    """The place of one worker process, which is filled again whenever it is empty."""

    def __init__(self, number: int, config: Path, ledger: Ledger) -> None:
        self.supervised = number == 0
        self.other_clock = False
        """Whether it is started in a time namespace."""
        self.process: subprocess.Popen[bytes] | None = None
        self._config = config
        self._ledger = ledger
        self._log = config.with_name(f"worker-{number + 1}.log")
        self._told = False

    def start(self) -> None:
        """Fill the place."""
        before = TIME_NAMESPACE if self.other_clock else ()
        ours = [*before, *DRAFTSMAN_COMMAND, "--config", str(self._config)]
        what = ["up", "--headless"] if self.supervised else ["worker", "--parent", str(os.getpid())]
        with self._log.open("ab") as log, blocked():
            self.process = subprocess.Popen(
                [*ours, *what],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, "TMPDIR": str(self._config.with_name(TEMPORARY))},
                start_new_session=True,
            )
        self._told = False

    def worker(self) -> psutil.Process | None:
        """Return the worker itself, which `up` has as its child; None while there is none."""
        if self.process is None or self.process.poll() is not None:
            return None
        with contextlib.suppress(psutil.Error):
            top = psutil.Process(self.process.pid)
            for found in top.children() if self.supervised else [top]:
                if "worker" in found.cmdline():
                    return found
        return None

    def agents(self) -> list[psutil.Process]:
        """Return the agents that the worker has running; each is the child of its guard."""
        found: list[psutil.Process] = []
        with contextlib.suppress(psutil.Error):
            worker = self.worker()
            for guard in worker.children() if worker else ():
                if any("guard.py" in word for word in guard.cmdline()):
                    found += guard.children()
        return found

    def kill(self) -> None:
        """Kill the process that fills the place: the worker, or its supervisor."""
        self._told = True
        if self.process is not None:
            self.process.kill()

    def terminate(self) -> None:
        """Ask it to stop."""
        self._told = True
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)

    async def end(self) -> int | None:
        """Wait until it ended; return the exit code, None for one that has to be killed."""
        if self.process is None:
            return 0
        try:
            return await asyncio.to_thread(self.process.wait, END)
        except subprocess.TimeoutExpired:
            self.kill()
            return None

    def refill(self) -> None:
        """Start it again where it ended, and note what ended by itself."""
        if self.process is None or (code := self.process.poll()) is None:
            return
        if not self._told:
            self._ledger.exits[code] += 1
        self.start()
        self._ledger.restarts += 1


class WorkerFleet:
    """All of them."""

    def __init__(self, count: int, config: Path, ledger: Ledger) -> None:
        self.slots: Sequence[WorkerSlot] = [
            WorkerSlot(number, config, ledger) for number in range(count)
        ]
        self._ledger = ledger

    def start(self) -> None:
        """Start every one."""
        for hand in self.slots:
            hand.start()

    async def run(self) -> None:
        """Keep every place filled, until cancelled."""
        while True:
            for hand in self.slots:
                hand.refill()
            await asyncio.sleep(WATCH)

    async def stop(self) -> None:
        """Stop all in order; one that does not end in time is a surprise."""
        for hand in self.slots:
            hand.terminate()
        for place, code in enumerate(await asyncio.gather(*(hand.end() for hand in self.slots))):
            if code != 0:
                how = f"with {code}" if code is not None else f"not within {END:.0f} s"
                self._ledger.unexpected_errors.append(
                    f"worker {place + 1} ended {how} when it was told to"
                )
