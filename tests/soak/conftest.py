"""Requirements of the soak in the header, and a summary of tests that could not run."""

from __future__ import annotations

from typing import Any

import pytest

from tests.kill.fault_points import environment as environment

NEEDS = (
    "soak needs: 4 GB free in /dev/shm or the temporary folder, an hour of two cores, and"
    " for its whole a PostgreSQL 15, 16, 17 and 18 (installed, or npm and a network), a tmux, a"
    " Chromium, a podman, a PgBouncer, Debian's Postfix, Dovecot and OpenDKIM, and the agents"
    " OpenCode, Codex, Claude Code, Qwen Code, Gemini CLI and Goose (or their paths in OPENCODE,"
    " CODEX, CLAUDE, QWEN, GEMINI and GOOSE),"
    " and npm, yarn, pnpm, bun, deno, cargo, go, mvn, gradle, tox, nox, rspec and phpunit on this"
    " machine, and a network for the 170 MB of libraries in tests/libraries"
)


@pytest.fixture
def database(own_database: str) -> str:
    """Provide a database to which no process of another test can connect."""
    return own_database


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option for a longer test of a worker's memory."""
    help_text = "for how long the memory of a worker is watched (3)"
    parser.addoption("--memory-minutes", type=float, default=3.0, metavar="N", help=help_text)


def pytest_report_header() -> str:
    """Print the requirements of all soak tests."""
    return NEEDS


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config: pytest.Config) -> None:
    """Print a summary line: the numbers of tests that ran and that could not, with the reasons."""
    reporter: Any = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or config.option.collectonly:
        return
    ran = [*reporter.stats.get("passed", ()), *reporter.stats.get("failed", ())]
    reasons = [_reason(report) for report in reporter.stats.get("skipped", ())]
    reasons += ["it broke before it began" for _ in reporter.stats.get("error", ())]
    why = f" ({'; '.join(sorted(set(reasons)))})" if reasons else ""
    reporter.write_line(f"soak: ran {len(ran)}, could not run {len(reasons)}{why}")


def _reason(report: pytest.TestReport) -> str:
    _, _, text = report.longrepr if isinstance(report.longrepr, tuple) else ("", 0, "skipped")
    return text.removeprefix("Skipped: ")
