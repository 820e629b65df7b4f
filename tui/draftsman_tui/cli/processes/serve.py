"""The `worker`, `bots`, `web` and `up` commands."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from draftsman.channels import registry
from draftsman.channels.plugin import ChannelPlugin
from draftsman.errors import ConfigError, UsageError
from draftsman_tui.cli.app import App, command
from draftsman_tui.cli.app_option import APP
from draftsman_tui.cli.processes.process_setup import child, set_up_log, warn_of_variables
from draftsman_tui.cli.processes.source_watch import SourceWatch
from draftsman_tui.cli.processes.supervisor import Child
from draftsman_tui.terminal import params
from draftsman_tui.terminal.extras import of_channel, require

if TYPE_CHECKING:
    from draftsman.settings import Settings


@command(
    "worker",
    section="Processes",
    examples=(
        "draftsman worker",
        "draftsman worker --queue fast --queue default --slots 4",
        "draftsman worker --app company.jobs",
        "draftsman worker --health-port 8080",
    ),
    long_running=True,
)
@click.option(
    "--queue", "queues", type=params.TEXT, multiple=True, help="Queue to serve; repeatable."
)
@click.option("--slots", type=click.IntRange(1, 1000), help="Maximum number of concurrent runs.")
@click.option("--no-leader", is_flag=True, help="Never become the leader, so run no sweeps.")
@click.option(
    "--health-port",
    type=params.PORT,
    metavar="PORT",
    help="Serve /healthz, /readyz and /metrics on this port, on all addresses.",
)
@APP
@click.option("--parent", type=int, hidden=True)
async def worker(
    app: App,
    queues: tuple[str, ...],
    slots: int | None,
    no_leader: bool,
    health_port: int | None,
    module: str | None,
    parent: int | None,
) -> None:
    """Run a worker.

    With --app, it runs the job types that a module of the current folder declares with @job; unset,
    `app` of [tool.draftsman] in the pyproject.toml of this folder names the module.

    A single worker at a time is the leader and runs the maintenance sweeps. On SIGTERM, SIGINT or
    SIGHUP, a worker stops claiming jobs, gives runs time to finish, and releases the rest at their
    last checkpoint. A second signal exits immediately.

    With --health-port, /healthz responds while the process works, and /readyz is 503 with the
    reason while it starts, drains or cannot reach the database. /metrics has figures for
    Prometheus, without people.
    """
    set_up_log(app)
    if parent is None:
        warn_of_variables(app)
    from draftsman.job_types.app import find_app
    from draftsman.worker_main import run_worker

    code = await run_worker(
        app.settings,
        queues or None,
        slots,
        leader=not no_leader,
        parent=parent,
        health_port=health_port,
        app=find_app(module, Path.cwd()),
    )
    if code:
        raise click.exceptions.Exit(code)


class BotsCommand(click.Command):
    """The command whose help lists the bots of the channels that are installed."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the bots before the examples."""
        bots = (channel for channel in registry.channels() if channel.bot is not None)
        with formatter.section("Channels"):
            formatter.write_dl(
                [(bot.table, f"{bot.bot_label} ({bot.docs})".removesuffix(" ()")) for bot in bots]
            )
        super().format_epilog(ctx, formatter)


@command(
    "bots",
    section="Processes",
    cls=BotsCommand,
    examples=("draftsman bots", "draftsman bots slack", "draftsman bots forges pagers"),
    long_running=True,
)
@click.argument("names", metavar="[CHANNEL]...", nargs=-1, type=params.TEXT)
@click.option("--parent", type=int, hidden=True)
async def bots(app: App, names: tuple[str, ...], parent: int | None) -> None:
    """Run the bots, and receive the events of forges and pagers.

    Runs all that is configured, or those named. On SIGTERM, SIGINT or SIGHUP, the bots finish the
    work in progress and stop.
    """
    set_up_log(app)
    if parent is None:
        warn_of_variables(app)
    settings: Settings = app.settings
    bots = [channel for channel in registry.channels() if channel.bot is not None]
    configured = _configured(settings)
    if not configured:
        ways = ", ".join(channel.setup(settings) or "" for channel in bots)
        raise ConfigError(f"no bot is configured; add {ways}")
    selected = [_named(name, bots) for name in names]
    for channel in selected:
        if setup := channel.setup(settings):
            raise ConfigError(f"{channel.table} is not configured; add {setup}")
    for channel in selected or configured:
        require(of_channel(channel.name))
    from draftsman_bots.process.runner import run_bots

    if code := await run_bots(settings, selected or configured, parent=parent):
        raise click.exceptions.Exit(code)


def _configured(settings: Settings) -> list[ChannelPlugin]:
    """Return the channels with a bot."""
    return [item for item in registry.channels() if item.bot and item.setup(settings) is None]


def _named(name: str, bots: Sequence[ChannelPlugin]) -> ChannelPlugin:
    """Return the channel of a table or name; raises ConfigError."""
    known = {channel.name: channel for channel in bots}
    known |= {channel.table: channel for channel in bots}
    return known[name] if name in known else registry.channel(name)


@command(
    "web",
    section="Processes",
    examples=(
        "draftsman web",
        "draftsman web --listen 127.0.0.1:9000",
        "draftsman web --url https://draftsman.example.org",
        "draftsman link --web",
    ),
    long_running=True,
)
@click.option("--listen", type=params.TEXT, metavar="HOST:PORT", help="Address of the server.")
@click.option("--port", type=params.PORT, help="Port alone, on the configured address.")
@click.option("--url", type=params.TEXT, help="URL of the inbox in browsers.")
@click.option("--parent", type=int, hidden=True)
async def web(
    app: App, listen: str | None, port: int | None, url: str | None, parent: int | None
) -> None:
    """Serve the web inbox: questions and jobs in a browser.

    The pages are made for phones and for large screens, and work without scripts. People sign in
    with a link of `draftsman link --web`, or as [web] configures. Browsers on other machines need
    https, so a reverse proxy. On SIGTERM, SIGINT or SIGHUP, requests in progress
    are finished. With --json, the URL is printed as JSON.
    """
    if listen is not None and port is not None:
        raise UsageError("--listen has a port; leave out --port")
    set_up_log(app)
    if parent is None:
        warn_of_variables(app)
    require(of_channel("web"))
    from draftsman_bots.web.service import run_web

    settings = _with_options(app.settings, listen, port, url)

    def started(url: str) -> None:
        app.out.result({"url": url}, url)
        app.out.info("to sign in: draftsman link --web; to stop: Ctrl-C")

    if code := await run_web(settings, started, parent=parent):
        raise click.exceptions.Exit(code)


def _with_options(
    settings: Settings, listen: str | None, port: int | None, url: str | None
) -> Settings:
    """Return the settings with the options; raises UsageError for an invalid value."""
    from pydantic import ValidationError

    from draftsman import field_errors
    from draftsman_bots.web.settings import WebSettings

    web = WebSettings.of(settings)
    if port is not None:
        listen = f"{web.listen.rpartition(':')[0]}:{port}"
    options = {key: value for key, value in (("listen", listen), ("url", url)) if value}
    try:
        changed = WebSettings.model_validate(web.model_dump(exclude_unset=True) | options)
    except ValidationError as error:
        raise field_errors.field_error(error) from None
    return settings.model_copy(update={"web": changed})


@command(
    "up",
    section="Processes",
    examples=(
        "draftsman up",
        "draftsman up --app company.jobs --reload",
        "draftsman up --headless",
    ),
    long_running=True,
)
@click.option("--headless", is_flag=True, help="Run without dashboard and prompts, as a service.")
@APP
@click.option(
    "--reload", is_flag=True, help="Restart the worker when a Python file of this folder changes."
)
@click.option("--attached", is_flag=True, hidden=True)
async def up(app: App, headless: bool, module: str | None, reload: bool, attached: bool) -> None:
    """Start a worker and the configured bots, and supervise them.

    A process that dies is restarted. On a terminal, opens the dashboard; q or Ctrl-C asks whether
    to stop everything or leave it running. The embedded database is migrated first; migrate any
    other database with: draftsman migrate

    With --reload, the worker finishes its runs, or releases them at their checkpoints, when a
    Python file below this folder has changed, and starts again. Code that cannot be imported is
    named, and the worker waits for the next change.
    """
    from draftsman.database import migrate
    from draftsman.database.server_url import database_url, session_url
    from draftsman.processes.shutdown import shutdown_signals

    code = 0
    if reload:
        _require_app(module)
    async with shutdown_signals() as signals:
        url, _ = await database_url(app.settings)
        await migrate.check_compatible(session_url(app.settings, url))
        if headless or not app.out.interactive:
            from draftsman_tui.cli.processes.supervisor import Supervisor

            set_up_log(app)
            warn_of_variables(app)
            watch = SourceWatch(Path.cwd()) if reload else None
            supervisor = Supervisor(_children(app, module), watch)
            code = await supervisor.run(signals, attached=attached)
        else:
            from draftsman_tui.cli.processes.foreground import Foreground

            options = [*_app_option(module), *(["--reload"] if reload else [])]
            options += ["--headless", "--attached"]
            headless_command = [*child(app, "up"), *options]
            code = await Foreground(app, headless_command, signals).run()
    if code:
        raise click.exceptions.Exit(code)


def _require_app(module: str | None) -> None:
    """Raise ConfigError without an app."""
    from draftsman.job_types.app import find_app

    if find_app(module, Path.cwd()) is None:
        raise ConfigError("--reload needs an app; name its module with --app")


def _app_option(module: str | None) -> list[str]:
    return [] if module is None else ["--app", module]


def _children(app: App, module: str | None) -> list[Child]:
    from draftsman_tui.cli.processes.supervisor import Child

    parent = ["--parent", str(os.getpid())]
    worker = [*child(app, "worker"), *_app_option(module), *parent]
    children = [Child("worker", worker, "worker; runs get time to finish")]
    if bots := _configured(app.settings):
        for channel in bots:
            require(of_channel(channel.name))
        children.append(Child("bots", [*child(app, "bots"), *parent], "bots"))
    return children
