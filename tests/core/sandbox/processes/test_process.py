"""Agent processes: environment, output and termination."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

from draftsman.errors import Failure
from draftsman.sandbox.processes.process import MAX_LINE, AgentProcess, LineSplitter, MalformedLine
from draftsman.settings.agents import AgentSettings

DEADLINE = 20.0
SHOW = """
import json, os
fds = [fd for fd in range(256) if os.path.exists(f"/dev/fd/{fd}")]
open_fds = []
for fd in fds:
    try: os.fstat(fd); open_fds.append(fd)
    except OSError: pass
print(json.dumps([dict(os.environ), open_fds, os.getcwd()]))
"""


class Log:
    def __init__(self) -> None:
        self.text = b""

    async def __call__(self, chunk: bytes) -> None:
        self.text += chunk


async def start(*command: str, cwd: Path, log: Log | None = None, **settings: Any) -> AgentProcess:
    agent = AgentSettings.of({"command": command, **settings})
    return await AgentProcess.start(
        agent, cwd=cwd, home=cwd / "home", lease=DEADLINE, on_stderr=log or Log()
    )


async def read(process: AgentProcess) -> list[bytes | MalformedLine]:
    async with asyncio.timeout(DEADLINE):
        return [line async for line in process.lines()]


async def test_an_agent_inherits_the_allowlist_and_three_descriptors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRAFTSMAN_DATABASE_URL", "postgresql://secret@localhost/draftsman")
    monkeypatch.setenv("PGPASSWORD", "secret")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("LC_TIME", "C")
    monkeypatch.setenv("PROXY", "proxy:1")
    extra: dict[str, Any] = {"env": {"MODE": "quick"}, "pass_env": ["PROXY", "NOT_SET"]}
    async with await start("{python}", "-I", "-c", SHOW, cwd=tmp_path, **extra) as process:
        [line] = await read(process)
        assert await process.wait() == 0
    assert isinstance(line, bytes)
    environment, descriptors, cwd = json.loads(line)
    allowed = {"PATH", "LANG", "LC_TIME", "TZ", "TERM", "TMPDIR", "USER", "LOGNAME", "LC_ALL"}
    assert environment.keys() - allowed <= {"HOME", "MODE", "PROXY", "LC_CTYPE", "PWD"}
    assert environment["HOME"] == "/home/agent"
    assert (environment["MODE"], environment["PROXY"]) == ("quick", "proxy:1")
    assert environment["LC_TIME"] == "C"
    assert "secret" not in line.decode()
    assert descriptors == [0, 1, 2]
    assert cwd == "/workspace/repo"


@pytest.mark.parametrize(
    "settings",
    [
        {"pass_env": ["PGPASSWORD"]},
        {"pass_env": ["DRAFTSMAN_DATA_DIR"]},
        {"env": {"DATABASE_URL": "sqlite://"}},
        {"env": {"STORE": "postgresql://u:p@h/d"}},
    ],
)
async def test_a_variable_with_a_database_url_is_refused(
    settings: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGPASSWORD", "secret")
    monkeypatch.setenv("DRAFTSMAN_DATA_DIR", "/nowhere")
    with pytest.raises(
        Failure, match=r"agents may not have the environment variable \w+"
    ) as raised:
        await start("{python}", "-c", "", cwd=tmp_path, **settings)
    assert raised.value.declared == "PERMANENT"


async def test_the_built_in_agent_ignores_modules_of_the_repository(tmp_path: Path) -> None:
    (tmp_path / "draftsman").mkdir()
    (tmp_path / "draftsman" / "__init__.py").write_text("raise SystemExit('the repository ran')")
    log = Log()
    async with await start(
        "{python}", "-m", "draftsman.agents.tidy", cwd=tmp_path, log=log
    ) as process:
        await process.send(b"no JSON\n")
        await read(process)
        await process.wait()
    assert b"JSONDecodeError" in log.text  # our agent was found, and refused the line


async def test_a_missing_program_is_reported(tmp_path: Path) -> None:
    with pytest.raises(Failure, match="program 'no-such-agent' not found; install it") as raised:
        await start("no-such-agent", cwd=tmp_path)
    assert (raised.value.origin, raised.value.code) == ("agent", "command_not_found")


async def test_a_program_that_cannot_be_run_is_logged(tmp_path: Path) -> None:
    script = tmp_path / "agent"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)
    log = Log()
    async with await start(str(script), cwd=tmp_path, log=log) as process:
        assert await read(process) == []
        assert await process.wait() == 127
    assert b"not found" in log.text


async def test_lines_are_written_and_read(tmp_path: Path) -> None:
    async with await start("cat", cwd=tmp_path) as process:
        await process.send(b"one\n")
        lines = process.lines()
        assert await anext(lines) == b"one"
        await process.send(b"two\n")
        assert await anext(lines) == b"two"


async def test_a_line_over_the_limit_is_reported_and_the_next_line_is_read(tmp_path: Path) -> None:
    code = f"print('x' * {MAX_LINE}); print('y' * {MAX_LINE + 1}); print('z', end='')"
    async with await start("{python}", "-c", code, cwd=tmp_path) as process:
        longest, too_long, last = await read(process)
    assert longest == b"x" * MAX_LINE
    assert too_long == MalformedLine(
        f"line of {MAX_LINE + 1:,} bytes is too long; the limit is {MAX_LINE:,} bytes"
    )
    assert last == b"z"


def test_a_line_without_an_end_takes_bounded_memory() -> None:
    splitter = LineSplitter(limit=100)
    for _ in range(1000):
        assert list(splitter.feed(b"x" * 90)) == []
        assert sum(map(len, splitter._pieces)) <= 100
    assert list(splitter.end()) == [
        MalformedLine("line of 90,000 bytes is too long; the limit is 100 bytes")
    ]


async def test_standard_error_is_passed_on_while_the_agent_runs(tmp_path: Path) -> None:
    first = asyncio.Event()
    log = Log()

    async def on_stderr(chunk: bytes) -> None:
        await log(chunk)
        first.set()

    agent = AgentSettings(command=("sh", "-c", "echo one >&2; read x; echo $x >&2"))
    async with await AgentProcess.start(
        agent, cwd=tmp_path, home=tmp_path, lease=DEADLINE, on_stderr=on_stderr
    ) as process:
        async with asyncio.timeout(DEADLINE):
            await first.wait()
        await process.send(b"two\n")
        assert await process.wait() == 0
    assert log.text == b"one\ntwo\n"


async def test_an_error_of_the_log_ends_the_agent(tmp_path: Path) -> None:
    async def on_stderr(chunk: bytes) -> None:
        raise OSError(28, "No space left on device")

    agent = AgentSettings(command=("sh", "-c", "yes >&2"))
    async with await AgentProcess.start(
        agent, cwd=tmp_path, home=tmp_path, lease=DEADLINE, on_stderr=on_stderr
    ) as process:
        assert await read(process) == []
        with pytest.raises(OSError, match="No space left"):
            await process.wait()


async def test_terminate_lets_an_agent_clean_up_and_kill_does_not(tmp_path: Path) -> None:
    code = "trap 'echo bye; exit 5' TERM; echo ready; while :; do read x || exit 9; done"
    async with await start("sh", "-c", code, cwd=tmp_path) as process:
        lines = process.lines()
        assert await anext(lines) == b"ready"
        process.terminate()
        assert [line async for line in lines] == [b"bye"]
        assert await process.wait() == 5
    async with await start("sh", "-c", code, cwd=tmp_path) as process:
        assert await anext(process.lines()) == b"ready"
        process.kill()
        assert await process.wait() == 137


async def test_a_write_to_an_agent_that_exited_is_no_error(tmp_path: Path) -> None:
    async with await start("true", cwd=tmp_path) as process:
        assert await process.wait() == 0
        await process.send(b"hello\n")
        process.heartbeat()
        process.kill()


async def test_a_heartbeat_after_the_exit_is_ignored(tmp_path: Path) -> None:
    async with await start("true", cwd=tmp_path) as process:
        await process.wait()
    with (tmp_path / "file").open("wb", buffering=0) as file:
        descriptors = [os.dup(file.fileno()) for _ in range(20)]
        process.heartbeat()
        process.kill()
        for descriptor in descriptors:
            os.close(descriptor)
    assert (tmp_path / "file").read_bytes() == b""


async def test_leaving_the_context_kills_an_agent_with_unread_output(tmp_path: Path) -> None:
    async with await start("yes", cwd=tmp_path) as process:
        guard = process.pid
        assert await anext(process.lines()) == b"y"
    with pytest.raises(ProcessLookupError):
        os.kill(guard, 0)
