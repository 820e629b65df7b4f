"""Child processes that isolate hostile input: without an environment, in a session of their own."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process

from draftsman.resources import module_command


async def start_isolated(module: str, *arguments: object) -> Process:
    """Start `main` of a module with `sys.path` as JSON and these arguments; raises OSError.

    Input and output are pipes, and errors are discarded.
    """
    return await asyncio.create_subprocess_exec(
        *module_command(module),
        json.dumps(sys.path),
        *map(str, arguments),
        stdin=PIPE,
        stdout=PIPE,
        stderr=DEVNULL,
        env={},
        start_new_session=True,
    )


def run_isolated(
    module: str, data: bytes, timeout: float, *arguments: object
) -> subprocess.CompletedProcess[bytes]:
    """Run a module as `start_isolated` does, with this input, and wait for its end.

    Raises OSError, and TimeoutExpired after `timeout` seconds.
    """
    return subprocess.run(
        [*module_command(module), json.dumps(sys.path), *map(str, arguments)],
        input=data,
        stdout=PIPE,
        stderr=DEVNULL,
        env={},
        start_new_session=True,
        timeout=timeout,
        check=False,
    )
