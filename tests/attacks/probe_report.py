"""A run of a hostile agent that tries all attacks of a process, and reports each."""

from __future__ import annotations

import contextlib
import json
import os
import select
import socket
import sys
from pathlib import Path
from subprocess import PIPE
from typing import Any

import psutil

from draftsman.sandbox.processes.process import AgentProcess
from draftsman.sandbox.run_sandbox import open_run_sandbox
from draftsman.settings.agents import AgentSettings
from draftsman.settings.sandbox import SandboxSettings
from tests.attacks import hostile_agent

DEADLINE = 60.0
LIMITS = {"processes": 64, "file_size_mb": 16, "memory_mb": 1024}
Report = dict[str, str]


async def run_program(mode: str, folder: Path, *command: str, **entry: Any) -> bytes:
    """Return the output of a program in the sandbox."""
    stderr = b""

    async def log(chunk: bytes) -> None:
        nonlocal stderr
        stderr += chunk

    settings = SandboxSettings.model_validate({"mode": mode, **LIMITS, **entry})
    sandbox = await open_run_sandbox(settings, repo=folder / "repo", home=folder / "home")
    with contextlib.closing(sandbox):
        agent = AgentSettings(command=command)
        async with await AgentProcess.start(
            agent,
            cwd=folder / "repo",
            home=folder / "home",
            lease=DEADLINE,
            on_stderr=log,
            sandbox=sandbox,
        ) as process:
            chunks = [chunk async for chunk in process.chunks()]
            await process.wait()
    assert chunks, stderr.decode()
    return b"".join(chunks)


async def attack_report(mode: str, folder: Path, **entry: Any) -> Report:
    """Return the result of each attack; `entry` are more settings of the sandbox."""
    key = folder / "id_ed25519"
    other = folder / "runs" / "D-2.1" / "repo" / "secret"
    other.parent.mkdir(parents=True)
    for path in (key, other):
        path.write_text("outside")
        path.chmod(0o666)  # access is refused by the sandbox, not by permissions
    with (
        socket.socket(socket.AF_UNIX) as unix,
        socket.socket(socket.AF_UNIX) as abstract,
        socket.socket() as tcp,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp,
    ):
        socket_path = f"/tmp/draftsman-attack-{os.getpid()}-{mode}"
        name = Path(socket_path).name
        unix.bind(socket_path)
        Path(socket_path).chmod(0o777)
        abstract.bind(f"\0{name}")
        tcp.bind(("127.0.0.1", 0))
        udp.bind(("127.0.0.1", 0))
        udp.setblocking(False)
        for server in (unix, abstract, tcp):
            server.listen()
        targets = {
            "pid": os.getpid(),
            "ssh_key": str(key),
            "other_clone": str(other),
            "unix_socket": socket_path,
            "abstract_socket": name,
            "tcp_port": tcp.getsockname()[1],
            "udp_port": udp.getsockname()[1],
        }
        victim = psutil.Popen(["cat"], stdin=PIPE) if mode == "off" else None
        if victim is not None:  # without a sandbox a traced worker would be stopped
            targets["pid"] = victim.pid
        os.environ["SLACK_BOT_TOKEN"] = "hunter2"
        try:
            command = (sys.executable, "-I", "-S", hostile_agent.__file__, json.dumps(targets))
            output = await run_program(mode, folder, *command, **entry)
        finally:
            del os.environ["SLACK_BOT_TOKEN"]
            if victim is not None:
                victim.kill()
                victim.communicate()
            Path(socket_path).unlink()
        arrived = {"udp": "worked"} if select.select([udp], [], [], 0)[0] else {}
    return {"mode": mode, **json.loads(output), **arrived}
