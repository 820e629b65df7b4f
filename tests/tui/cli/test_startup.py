"""Start-up of the command line: the modules that a command imports."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from draftsman_testing.factories import GATE, QUESTION, Factory
from tests.support.slow import slow_except

NEVER: Final = {
    "apscheduler", "draftsman_bots", "draftsman_soak", "httpx", "jsonschema", "psutil",
    "psycopg_pool", "rich", "slack_bolt", "slack_sdk", "starlette", "textual", "trello", "uvicorn",
}  # fmt: skip
"""Packages that only long-running processes or other commands need."""
DECLARATION: Final = re.compile(r"draftsman_bots(\.\w+(\.(plugin|settings))?)?")
"""Modules with which a channel validates its part of the configuration."""
NOT_TO_READ: Final = NEVER | {
    "annotated_types", "argparse", "dotenv", "pydantic", "pydantic_core", "pydantic_settings",
}  # fmt: skip
"""Packages that a command that only reads does not need either."""
READERS: Final = [
    "jobs", "show {job}", "why {job}", "questions", "events {job}", "logs {job}", "workers",
    "deliveries", "types",
]  # fmt: skip
WRITERS: Final = ["extend {job}/1 1h", "submit --unchecked --type noop"]
COUNT: Final = """
import atexit, json, sys
system = {"sitecustomize"}  # of Debian's Python
atexit.register(lambda: print(json.dumps(sorted(sys.modules.keys() - system)), file=sys.stderr))
"""
RUN: Final = """
from draftsman_tui.__main__ import main
main()
"""


DECLARATIONS: Final = """
from importlib import import_module
from draftsman_tui.cli.command_index import read
for command in read().values():
    import_module(command.module)
"""
"""What the help of the commands imports, and each completion in a shell."""
SHOWS_JOBS: Final = {
    "draftsman.deliveries.documents.builder",
    "draftsman.deliveries.documents.json",
    "draftsman.deliveries.documents.plain",
    "draftsman.jobs.details.sections.order",
    "draftsman.jobs.details.sections.runs",
}
"""Modules with which a command shows a job: with them, its help takes half as long again."""
NOT_FOR_HELP: Final = {"psycopg", "pydantic", "slack_bolt", "textual", "trello"}


@pytest.fixture
async def job(make: Factory) -> str:
    """Give a job with an open approval; another has an open question."""
    await make.asked(QUESTION)
    return (await make.asked(GATE)).name


@pytest.mark.parametrize("line", slow_except(["submit --unchecked --type noop"], WRITERS))
async def test_a_writing_command_loads_only_required_modules(
    database_url: str, config: Callable[[str | None], Path], job: str, line: str
) -> None:
    line = f"{line.format(job=job)} --json --config {config('root')}"
    modules = await loaded_modules(line, database_url)
    others = [module for module in modules if not DECLARATION.fullmatch(module)]
    assert packages(others) & NEVER == set()


@pytest.mark.parametrize("line", slow_except(["show {job}", "types"], READERS))
async def test_a_command_builds_no_models(database_url: str, job: str, line: str) -> None:
    modules = await loaded_modules(f"{line.format(job=job)} --json", database_url)
    assert packages(modules) & NOT_TO_READ == set()


async def test_a_configuration_file_is_validated_once(
    database_url: str,
    config: Callable[[str | None], Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))  # others also validate files
    line = f"jobs --config {config('anna')}"
    first, second = [await loaded_modules(line, database_url) for _ in range(2)]
    assert "pydantic" in first
    assert packages(second) & NOT_TO_READ == set()


async def test_a_running_embedded_server_is_used_without_psutil() -> None:
    modules = await loaded_modules("", "", "import draftsman.database.embedded")
    assert "psutil" not in modules


async def test_help_loads_neither_models_nor_a_driver() -> None:
    modules = await loaded_modules("--help", "", DECLARATIONS + RUN)
    assert packages(modules) & NOT_FOR_HELP == set()
    assert set(modules) & SHOWS_JOBS == set()


def packages(modules: list[str]) -> set[str]:
    """Return the packages of the modules."""
    return {module.partition(".")[0] for module in modules}


async def loaded_modules(line: str, url: str, code: str = RUN) -> list[str]:
    """Return the modules that a process has at the end of the code."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", f"{COUNT}{code}", *line.split()),
        env={**os.environ, "DRAFTSMAN_DATABASE_URL": url} if url else None,
        cwd=Path(__file__).parent,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    _, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()
    modules: list[str] = json.loads(errors.splitlines()[-1])
    return modules
