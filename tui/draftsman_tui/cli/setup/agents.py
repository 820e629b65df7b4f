"""The `agents` command group: the configured agents and their checks."""

from __future__ import annotations

import asyncio
import shlex
from typing import TYPE_CHECKING, Any

import click

from draftsman.errors import Failure, NotFound
from draftsman_tui.cli.app import App, ListGroup, command, example_lines
from draftsman_tui.cli.setup.configuration import mask_command
from draftsman_tui.common.output import one_line

if TYPE_CHECKING:
    from draftsman.handlers.subprocesses.agent_check import AgentCheck


@click.group(
    "agents",
    cls=ListGroup,
    epilog=example_lines(("draftsman agents", "draftsman agents check tidy")),
)
def agents() -> None:
    """List the configured agents, and check them.

    The agents are those of [agents] in the configuration of this machine; the workers of another
    machine have their own.
    """


@command("list", examples=("draftsman agents list", "draftsman agents list --json"))
async def list_agents(app: App) -> None:
    """List each agent with its kind, command and version.

    INSTALLED says whether a run could start the program inside the sandbox of this machine.
    """
    checks = await asyncio.to_thread(_check, app, app.settings.agent_names)
    if app.json:
        app.out.document([_document(check) for check in checks])
        return
    default = app.settings.agent_by_default
    rows = [
        (
            check.name,
            check.kind,
            "yes" if check.installed else "no",
            check.version or "",
            "yes" if check.network else "no",
            one_line(shlex.join(mask_command(list(check.command)))),
        )
        for check in checks
    ]
    heads = ("AGENT", "KIND", "INSTALLED", "VERSION", "NETWORK", "COMMAND")
    app.out.table(heads, rows, flexible=5)
    if default is not None:
        app.out.info(f"default: {default}")
    for check in checks:
        if check.problem is not None:
            app.out.info(f"{check.name}: {check.problem}: draftsman agents check {check.name}")


@command("check", examples=("draftsman agents check tidy", "draftsman agents check tidy --json"))
@click.argument("name")
async def check_agent(app: App, name: str) -> None:
    """Check whether a run could start an agent on this machine.

    The program, its interpreter and its script are looked up inside the sandbox. The exit code is
    1 if a run could not start it.
    """
    if name not in app.settings.agents:
        known = ", ".join(app.settings.agent_names)
        raise NotFound(f"no agent {name!r} in the configuration; configured agents: {known}")
    [check] = await asyncio.to_thread(_check, app, [name])
    if app.json:
        app.out.document(_document(check))
    else:
        rows = {
            "agent": check.name,
            "kind": check.kind,
            "command": shlex.join(mask_command(list(check.command))),
            "version": check.version or "unknown",
            "network": "yes" if check.network else "no",
            "installed": "yes" if check.installed else "no",
        }
        for label, text in rows.items():
            app.out.print(f"{label:<10} {one_line(text)}")
        if (finding := check.problem or check.warning) is not None:
            app.out.print(f"{'problem':<10} {one_line(finding)}")
        if check.hint is not None:
            app.out.info(check.hint)
    if not check.installed:
        raise SystemExit(1)


def _check(app: App, names: list[str]) -> list[AgentCheck]:
    from draftsman.handlers.sandbox import mode_detection
    from draftsman.handlers.subprocesses.agent_check import check_agent as check

    try:
        mode = mode_detection.choose_mode(app.settings.sandbox)
    except Failure:
        mode = None  # draftsman doctor reports it
    return [check(name, app.settings.agents[name], mode) for name in names]


def _document(check: AgentCheck) -> dict[str, Any]:
    return {
        "name": check.name,
        "kind": check.kind,
        "command": mask_command(list(check.command)),
        "network": check.network,
        "installed": check.installed,
        "version": check.version,
        "problem": check.problem or check.warning,
        "hint": check.hint,
    }


agents.add_command(list_agents)
agents.add_command(check_agent)
