"""Start of draftsman as a child process."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import IO, TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from asyncio.subprocess import Process

DRAFTSMAN_COMMAND: Final = (sys.executable, "-P", "-m", "draftsman_tui")
"""`-P` keeps modules of the current directory from being imported."""
STOP_TIMEOUT: Final = 30


async def start_process(
    command: Sequence[str],
    *,
    stdin: int | None = None,
    output: IO[Any] | None = None,
    env: Mapping[str, str] | None = None,
) -> Process:
    """Start a command of draftsman in a new session, with shutdown signals held until it is ready.

    `stdin` is as for `subprocess` (default: DEVNULL); `output` gets stdout and stderr, and
    `env` is added to the environment.
    """
    import asyncio
    import subprocess

    from draftsman.processes.shutdown import blocked

    with blocked():
        return await asyncio.create_subprocess_exec(
            *command,
            stdin=subprocess.DEVNULL if stdin is None else stdin,
            stdout=output,
            stderr=output,
            start_new_session=True,
            env={**os.environ, **(env or {})},
        )


async def stop_process(process: Process) -> None:
    """Shut a process down, and kill it if it is still running after `STOP_TIMEOUT` seconds."""
    import asyncio
    from contextlib import suppress

    if process.returncode is not None:
        return
    with suppress(ProcessLookupError):
        process.terminate()
    try:
        async with asyncio.timeout(STOP_TIMEOUT):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()
