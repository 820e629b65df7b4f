"""The `agents` command group: the configured agents and their checks."""

from __future__ import annotations

import asyncio
import shlex
from typing import TYPE_CHECKING, Any

import click

from draftsman.errors import Failure, NotFound
from draftsman.formats.invisible import one_line
from draftsman.value_format import network_text
from draftsman_tui.cli.app import App, ListGroup, command_group
from draftsman_tui.cli.setup.configuration import mask_command
from draftsman_tui.terminal import params

if TYPE_CHECKING:
    from draftsman.sandbox.processes.agent_check import AgentCheck


@command_group(
    "agents",
    section="Setup",
    cls=ListGroup,
    examples=("draftsman agents", "draftsman agents check"),
)
def agents() -> None:
    """List the configured agents, and check them.

    The agents are those of [agents] in the configuration of this machine; the workers of another
    machine have their own.
    """


@agents.subcommand("list", examples=("draftsman agents list", "draftsman agents list --json"))
async def list_agents(app: App) -> None:
    """List each agent with its kind, command and version.

    INSTALLED says whether a run could start the program inside the sandbox of this machine.
    """
    checks = await asyncio.to_thread(_check, app, app.settings.agent_names, False)
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
            network_text(check.network),
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
            app.out.info(f"{check.name}: {check.problem}; see: draftsman agents check {check.name}")


@agents.subcommand(
    "check",
    examples=(
        "draftsman agents check",
        "draftsman agents check codex --probe",
        "draftsman agents check codex --json",
    ),
)
@click.argument("name", required=False)
@click.option("--probe", is_flag=True, help="Start it with a short prompt, which calls its model.")
@click.option(
    "--timeout",
    type=params.DURATION,
    default="2m",
    show_default=True,
    help="Maximum time for the reply to the probe, e.g. 30s.",
)
async def check_agent(app: App, name: str | None, probe: bool, timeout: float) -> None:
    """Check whether a run could start an agent on this machine; without NAME, each agent.

    The program, its interpreter and its script are looked up inside the sandbox. The key of its
    gateway must be in the environment. --probe starts it in an empty repository, in its sandbox and
    with its gateway. The exit code is 1 if a run could not start an agent, or if a probe fails.
    """
    if name is None:
        await _check_all(app, probe, timeout)
        return
    if name not in app.settings.agents:
        from draftsman.settings.agents import known_table

        known = ", ".join(app.settings.agent_names)
        add = f"; to add it, an empty [agents.{name}] is enough" if known_table(name) else ""
        text = f"no agent {name!r} in the configuration; configured agents: {known}{add}"
        raise NotFound(text)
    [check] = await asyncio.to_thread(_check, app, [name], True)
    result = await _probe(app, name, timeout) if probe and check.installed else None
    if app.json:
        app.out.document(_document(check) | ({} if result is None else {"probe": result}))
    else:
        rows = {
            "agent": check.name,
            "kind": check.kind,
            "command": shlex.join(mask_command(list(check.command))),
            "version": check.version or "unknown",
            "network": network_text(check.network),
            "installed": "yes" if check.installed else "no",
        }
        if check.model is not None:
            rows["model"] = check.model
        if result is not None:
            usage = f"{result['seconds']:.1f} s, {result['tokens']} tokens"
            outcome = "succeeded" if result["succeeded"] else "failed"
            rows["probe"] = f"{outcome} ({usage}): {result['text']}"
        for label, text in rows.items():
            app.out.print(f"{label:<10} {one_line(text)}")
        if (finding := check.problem or check.warning) is not None:
            app.out.print(f"{'problem':<10} {one_line(finding)}")
        if check.hint is not None:
            app.out.info(check.hint)
    if not check.installed or (result is not None and not result["succeeded"]):
        raise SystemExit(1)


async def _check_all(app: App, probe: bool, timeout: float) -> None:
    """Print a row for each configured agent; exit with 1 if a check or a probe fails."""
    checks = await asyncio.to_thread(_check, app, app.settings.agent_names, True)
    probes = {
        check.name: await _probe(app, check.name, timeout)
        for check in checks
        if probe and check.installed
    }
    failed = {check.name for check in checks if not check.installed}
    failed |= {name for name, probe in probes.items() if not probe["succeeded"]}
    if app.json:
        app.out.document(
            [
                _document(check) | ({"probe": probes[check.name]} if check.name in probes else {})
                for check in checks
            ]
        )
    else:
        rows = [
            (
                check.name,
                check.kind,
                "failed" if check.name in failed else "ok",
                check.version or "",
                one_line(_finding(check, probes.get(check.name))),
            )
            for check in checks
        ]
        app.out.table(("AGENT", "KIND", "CHECK", "VERSION", "PROBLEM"), rows, flexible=4)
    if failed:
        raise SystemExit(1)


def _finding(check: AgentCheck, probe: dict[str, Any] | None) -> str:
    """Return the problem of an agent, or the error of its probe."""
    text = check.problem or check.warning or ""
    return str(probe["text"]) if probe is not None and not probe["succeeded"] else text


def _check(app: App, names: list[str], starts: bool) -> list[AgentCheck]:
    from draftsman.sandbox import mode_detection
    from draftsman.sandbox.processes.agent_check import check_agent as check

    try:
        mode = mode_detection.choose_mode(app.settings.sandbox)
    except Failure:
        mode = None  # draftsman doctor reports it
    settings = app.settings
    agents = settings.agents
    return [check(name, agents[name], mode, settings.gateways, starts) for name in names]


async def _probe(app: App, name: str, timeout: float) -> dict[str, Any]:
    from draftsman.agent_runs.agent_probe import probe_agent

    probe = await probe_agent(app.settings, name, timeout)
    return {
        "succeeded": probe.succeeded,
        "text": probe.text,
        "seconds": round(probe.seconds, 3),
        "tokens": probe.tokens,
        "cost_usd": sum(call.cost_usd for call in probe.calls),
        "models": sorted({call.model for call in probe.calls}),
    }


def _document(check: AgentCheck) -> dict[str, Any]:
    from draftsman.settings.network import as_json

    return {
        "name": check.name,
        "kind": check.kind,
        "command": mask_command(list(check.command)),
        "network": as_json(check.network),
        "installed": check.installed,
        "model": check.model,
        "version": check.version,
        "problem": check.problem or check.warning,
        "hint": check.hint,
    }
