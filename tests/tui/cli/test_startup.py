"""Start-up of the command line: what a command imports before it does its work."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Final

import pytest

MODULES: Final = 520
"""Most modules that a command on jobs or questions may load, the standard library included."""
NEVER: Final = {
    "apscheduler", "draftsman_bots", "draftsman_soak", "httpx", "jsonschema", "psutil",
    "psycopg_pool", "rich", "slack_bolt", "slack_sdk", "starlette", "textual", "trello", "uvicorn",
}  # fmt: skip
"""Packages that only long-running processes or other commands need."""
RUN: Final = """
from draftsman_tui.__main__ import main
try:
    main()
except SystemExit:
    pass
"""
COUNT: Final = """
import json, sys
print(json.dumps(sorted(sys.modules)), file=sys.stderr)
"""


@pytest.mark.parametrize(
    "line",
    ["jobs", "show D-1", "questions", "events", "answer D-1/1 yes", "submit --unchecked Tidy"],
)
async def test_a_command_loads_what_it_needs_alone(database_url: str, line: str) -> None:
    modules = await loaded_modules(line, database_url)
    assert {module.partition(".")[0] for module in modules} & NEVER == set()
    assert len(modules) <= MODULES


async def test_a_running_embedded_server_is_used_without_psutil() -> None:
    modules = await loaded_modules("", "", "import draftsman.embedded")
    assert "psutil" not in modules


async def test_help_loads_neither_settings_nor_a_driver() -> None:
    modules = await loaded_modules("--help", "")
    assert {module.partition(".")[0] for module in modules} & {"psycopg", "pydantic"} == set()


async def loaded_modules(line: str, url: str, code: str = RUN) -> list[str]:
    """Return the modules that a process has at the end of the code."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", f"{code}{COUNT}", *line.split()),
        env={**os.environ, "DRAFTSMAN_DATABASE_URL": url} if url else None,
        cwd=Path(__file__).parent,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    _, errors = await process.communicate()
    modules: list[str] = json.loads(errors.splitlines()[-1])
    return modules
