"""The `mcp` command: an MCP server on standard input and output."""

from __future__ import annotations

import sys
from typing import Final

import click

from draftsman.agent_runs.mcp.run_tools import INSTRUCTIONS, RunTools
from draftsman_tui.cli.app import App, command
from draftsman_tui.cli.mcp.stdio import serve
from draftsman_tui.cli.mcp.tools import TeamTools, ask_run
from draftsman_tui.entities import run_socket
from draftsman_tui.terminal import params

DEFAULT_WAIT: Final = 50.0
"""Seconds that a call waits for people: clients give up after a minute by default."""


@command(
    "mcp",
    examples=(
        "draftsman mcp",
        "draftsman mcp --wait 30m --notify slack:C0123",
        "claude mcp add draftsman -- draftsman mcp --notify slack:C0123",
    ),
)
@click.option(
    "--wait",
    type=params.DURATION,
    default=DEFAULT_WAIT,
    help="Time that a question waits for an answer, unless the call sets it. Default: 50s.",
)
@click.option(
    "--notify",
    type=params.TEXT,
    multiple=True,
    metavar="TARGET",
    help="Target of questions: log, webhook:NAME, slack:CHANNEL, trello:CARD or "
    "forge:ISSUE; repeatable.",
)
async def mcp(app: App, wait: float, notify: tuple[str, ...]) -> None:
    """Run an MCP server for a coding agent.

    The client starts this command, and speaks JSON-RPC with it on standard input and output.
    Outside a run the tools are ask_human, request_approval, submit_job and job_status; inside of
    a run they are ask_human, request_approval and report_progress, for the run's job.
    """
    team = None if run_socket.path() else TeamTools(app, wait, list(notify))
    tools = RunTools(ask_run).tools() if team is None else team.tools()
    try:
        await serve(tools, INSTRUCTIONS, sys.stdin.buffer, sys.stdout.buffer)
    finally:
        if team is not None:
            await team.close()
