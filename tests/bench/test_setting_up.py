"""Queues that cannot be installed or started are listed with the reason."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from bench import install
from bench.arguments import arguments
from bench.queue_process import Contestant, load_contestant, start_process
from bench.resource_usage import resident_mb, server_cpu
from bench.server import BenchError
from draftsman.database.database import Connection


def test_without_node_its_queues_are_missing_with_the_reason(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    programs, missing = install.programs(["graphile"])
    assert programs == {}
    assert missing == {"graphile": "there is no node with npm on the PATH"}


def test_without_a_newer_python_oban_is_missing_with_the_reason(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    shim = tmp_path / "python3.13"  # a version manager's program for a version that is not there
    shim.write_text("#!/bin/sh\nexit 127\n")
    shim.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(install, "OBAN_PYTHON", (99, 0))
    monkeypatch.setattr(install, "FOLDER", tmp_path)
    programs, missing = install.programs(["oban"])
    assert programs == {}
    assert missing["oban"].startswith("it needs Python 99.0 or later; this is 3.")


async def test_version_names_another_python() -> None:
    about = {"distribution": "oban", "version": "0.7.0"}
    own = ".".join(map(str, sys.version_info[:2]))
    assert Contestant("oban", (), {}, about | {"python": own}).version == "oban 0.7.0"
    assert Contestant("oban", (), {}, about | {"python": "4.0"}).version.endswith("(Python 4.0)")
    assert Contestant("graphile", (), {}, about).version == "oban 0.7.0"


async def test_queue_that_cannot_be_imported_is_listed_with_the_reason() -> None:
    program = install.ours()
    with pytest.raises(BenchError, match=r"No module named 'bench\.peers\.nobody'"):
        await load_contestant("nobody", program.command, program.environment)


async def test_other_output_of_a_child_is_ignored() -> None:
    script = """import sys; print('hello'); print('{"event": "ready"}'); sys.stdin.read()"""
    async with start_process((sys.executable, "-c", script), {}) as child:
        assert await child.hear("ready") == {"event": "ready"}
        assert resident_mb(child.pid) > 1


async def test_last_line_of_a_child_is_the_reason() -> None:
    async def listen() -> None:
        async with start_process((sys.executable, "-c", "exit('no luck')"), {}) as child:
            await child.hear("ready")

    with pytest.raises(BenchError, match="ready had to come, the end came: no luck"):
        await listen()


async def test_draftsman_describes_itself() -> None:
    program = install.ours()
    side = await load_contestant("draftsman", program.command, program.environment)
    assert side.ours
    assert side.settings("default") == {"slots": 10}
    assert side.settings("fast") == {"slots": 100}
    assert side.jobs("fast", 1000) == 1000


async def test_server_process_of_a_connection_is_found(conn: Connection) -> None:
    server = server_cpu(conn)
    assert server is not None
    assert server.seconds() > 0


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ("--peers celery", "celery is not known; there are pgqueuer, procrastinate"),
        ("--jobs 10", "--jobs 1000 or more"),
        ("--rounds 0", "1 or more"),
    ],
)
def test_invalid_command_line_lists_the_allowed_values(
    line: str,
    wrong: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "argv", ["bench", *line.split()])
    with pytest.raises(SystemExit) as exited:
        arguments(None)
    assert exited.value.code == 2
    assert wrong in capsys.readouterr().err.replace("\n", " ")
