"""`worker`, `bots` and `up`: the processes that do the work."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

import click

from draftsman.errors import ConfigError
from draftsman_tui.cli.app import App, command
from draftsman_tui.cli.process.process_setup import child, set_up_log, warn_of_variables
from draftsman_tui.cli.setup.doctor_checks import Finding
from draftsman_tui.common import params
from draftsman_tui.common.extras import require

if TYPE_CHECKING:
    from draftsman.runtime import Runtime
    from draftsman.settings import Settings, SlackSettings
    from draftsman_tui.cli.process.supervisor import Child


CHATS: Final = ("slack", "trello")
"""Chats that have a bot: each is a table of the configuration and an extra of the package."""


@command(
    "worker",
    examples=("draftsman worker", "draftsman worker --queue fast --queue default --slots 4"),
    long_running=True,
)
@click.option(
    "--queue", "queues", type=params.TEXT, multiple=True, help="Claim from it; repeatable."
)
@click.option("--slots", type=click.IntRange(1, 1000), help="Runs at the same time.")
@click.option("--no-leader", is_flag=True, help="Never lead: run no sweeps.")
@click.option("--parent", type=int, hidden=True)
async def worker(
    app: App, queues: tuple[str, ...], slots: int | None, no_leader: bool, parent: int | None
) -> None:
    """Run jobs, and lead where nobody does.

    SIGTERM, SIGINT or SIGHUP stops it: it claims no more, lets runs finish for a while, and hands
    the rest back at their last checkpoint. A second one exits at once.
    """
    set_up_log(app)
    if parent is None:
        warn_of_variables(app)
    from draftsman.worker_main import run_worker

    code = await run_worker(
        app.settings, queues or None, slots, leader=not no_leader, parent=parent
    )
    if code:
        raise click.exceptions.Exit(code)


@command(
    "bots",
    examples=("draftsman bots", "draftsman bots --slack", "draftsman bots --trello"),
    long_running=True,
)
@click.option("--slack", is_flag=True, help="Slack alone, where there are others.")
@click.option("--trello", is_flag=True, help="Trello alone, where there are others.")
@click.option("--parent", type=int, hidden=True)
async def bots(app: App, slack: bool, trello: bool, parent: int | None) -> None:
    """Listen and speak in chat: Slack and Trello.

    It serves what the configuration has: [slack], [trello]. SIGTERM, SIGINT or SIGHUP stops it,
    after what it has begun.
    """
    set_up_log(app)
    if parent is None:
        warn_of_variables(app)
    settings: Settings = app.settings
    wanted = [name for name, meant in (("slack", slack), ("trello", trello)) if meant]
    chats = _chats(settings)
    if not chats:
        raise ConfigError(
            "no chat is configured; add [slack] (docs/slack.md) or [trello] (docs/trello.md)"
        )
    if missing := [name for name in wanted if name not in chats]:
        raise ConfigError(f"{missing[0]} is not configured; add [{missing[0]}]")
    for name in wanted or chats:
        require(name)
    from draftsman_bots.runner import run_bots

    if code := await run_bots(settings, only=wanted or chats, parent=parent):
        raise click.exceptions.Exit(code)


def _chats(settings: Settings) -> list[str]:
    """Return the chats that are configured."""
    return [name for name in CHATS if getattr(settings, name) is not None]


@command("up", examples=("draftsman up", "draftsman up --headless"), long_running=True)
@click.option("--headless", is_flag=True, help="Ask nothing and show no dashboard: for a service.")
@click.option("--attached", is_flag=True, hidden=True)
async def up(app: App, headless: bool, attached: bool) -> None:
    """Start all that is needed, and keep it running.

    That is a worker, and the bots where a chat is configured. What dies is started again. On a
    terminal you get the dashboard; q or Ctrl-C asks whether to stop all or leave it running. The
    embedded database is brought to this version first; any other has to be (see: draftsman
    migrate).
    """
    from draftsman import migrate
    from draftsman.runtime import database_url
    from draftsman.shutdown import shutdown_signals

    code = 0
    async with shutdown_signals() as signals:
        url, _ = await database_url(app.settings)
        await migrate.check_compatible(url)
        if headless or not app.out.interactive:
            from draftsman_tui.cli.process.supervisor import Supervisor

            set_up_log(app)
            warn_of_variables(app)
            code = await Supervisor(_children(app)).run(signals, attached=attached)
        else:
            from draftsman_tui.cli.process.foreground import Foreground

            held = [*child(app, "up"), "--headless", "--attached"]
            code = await Foreground(app, held, signals).run()
    if code:
        raise click.exceptions.Exit(code)


async def check_slack(slack: SlackSettings) -> list[Finding]:
    """Return what `doctor` finds out about Slack."""
    try:
        require("slack")
    except ConfigError as error:
        return [Finding("slack", "fail", str(error))]
    from draftsman_bots.slack.doctor import checks

    return [Finding("slack", one.status, one.text, one.then) async for one in checks(slack)]


async def check_trello(rt: Runtime) -> list[Finding]:
    """Return what `doctor` finds out about Trello, where it is configured."""
    if (trello := rt.settings.trello) is None:
        return []
    try:
        require("trello")
    except ConfigError as error:
        return [Finding("trello", "fail", str(error))]
    from draftsman_bots.trello.doctor import checks

    return [Finding("trello", one.status, one.text, one.then) async for one in checks(rt, trello)]


def _children(app: App) -> list[Child]:
    from draftsman_tui.cli.process.supervisor import Child

    parent = ["--parent", str(os.getpid())]
    worker = [*child(app, "worker"), *parent]
    found = [Child("worker", worker, "worker; its runs get time to finish")]
    if chats := _chats(app.settings):
        for name in chats:
            require(name)
        found.append(Child("bots", [*child(app, "bots"), *parent], "bots"))
    return found
