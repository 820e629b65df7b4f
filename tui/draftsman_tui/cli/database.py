"""The `migrate` and `db` commands: schema migrations and the embedded server."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from draftsman.database.migration_files import Migration
from draftsman.errors import Refused, UsageError
from draftsman.formats.amounts import counted
from draftsman.formats.invisible import one_line
from draftsman.formats.json_data import as_data
from draftsman_tui.cli.app import App, command, command_group
from draftsman_tui.cli.perform import confirm
from draftsman_tui.terminal import params
from draftsman_tui.terminal.output import line, styled

if TYPE_CHECKING:
    from draftsman.database.embedded import EmbeddedServer, ServerStatus
    from draftsman.database.migrate import RecordedPackage

ENDING: Final = 1.0
"""Seconds for which the connection of a program that has ended may still be open."""


@command(
    "migrate",
    section="Setup",
    examples=("draftsman migrate", "draftsman migrate --sql | psql -1 $DRAFTSMAN_DATABASE_URL"),
)
@click.option("--check", is_flag=True, help="Only check; exit with 6 if migrations are missing.")
@click.option("--sql", is_flag=True, help="Print the SQL of missing migrations; change nothing.")
@click.option(
    "--restored",
    is_flag=True,
    help="Start a new event epoch after restoring a dump.",
)
@click.option("--grant", is_flag=True, help="Only grant the privileges of the group roles again.")
@click.option("-y", "--yes", is_flag=True, help="Import people of the configuration.")
async def migrate(app: App, check: bool, sql: bool, restored: bool, grant: bool, yes: bool) -> None:
    """Migrate the database schema to this version.

    The embedded database is migrated automatically, a server only by this command. It is safe to
    run it several times at once and while workers are running. A migration that cannot lock a table
    gives up after two seconds and is retried for five minutes. The packages of channels have their
    own tables; those of a package that is absent here are named, and kept.
    """
    from draftsman.database import migrate as migrations
    from draftsman.database.server_url import database_url, session_url

    if check + sql + restored + grant > 1:
        raise UsageError("--check, --sql, --restored and --grant cannot be combined")
    url, embedded = await database_url(app.settings, migrations=False)
    url = session_url(app.settings, url)
    if grant:
        if statements := await migrations.grant(url):
            raise Refused(migrations.ROLES_HINT.format(statements))
        app.out.info("privileges of the group roles granted")
    elif sql:
        _print_sql(app, await migrations.script(url))
    elif check:
        state = await migrations.applied_migrations(url)
        _print_state(app, state, await migrations.packages(url))
        await migrations.check(url)
    elif restored:
        epoch = await migrations.start_epoch(url)
        text = f"events are in epoch {epoch}; earlier cursors remain valid"
        app.out.result({"epoch": epoch}, text)
    else:
        applied = await migrations.migrate(url, app.out.info)
        _print_applied(app, applied, await migrations.packages(url))
        if not embedded:
            await _import_people(app, yes)
        await migrations.check(url)


async def _import_people(app: App, yes: bool) -> None:
    """Offer to import the people of the configuration into the database of a server."""
    from draftsman.actions.people import import_people
    from draftsman.people.configuration import configured_directory
    from draftsman_tui.cli.perform import act

    new = configured_directory(app.settings)
    if not new:
        return
    async with app.runtime() as rt:
        if not (await rt.people.directory()).changes(new):
            return
        if yes or (app.out.interactive and not app.json):
            await act(app, rt, import_people, new, yes=yes)
        else:
            text = "people in the configuration are not in the database"
            app.out.info(f"{text}; to import them: draftsman people import")


def _print_sql(app: App, missing: list[tuple[str, str]]) -> None:
    if app.json:
        app.out.document([{"name": name, "sql": sql} for name, sql in missing])
    elif not missing:
        app.out.info("no missing migrations")
    for name, sql in missing if not app.json else ():
        app.out.write(f"-- {name}\n{sql.rstrip()}\n\n")


def _print_state(app: App, migrations: list[Migration], packages: list[RecordedPackage]) -> None:
    if app.json:
        files = [{"name": item.name, "applied_at": item.applied_at} for item in migrations]
        app.out.document({"migrations": files, "packages": packages})
        return
    for migration in migrations:
        state = styled("applied", "green") if migration.applied_at else styled("missing", "red")
        app.out.print(line(f"{migration.name}  ", state))
    _print_packages(app, packages)


def _print_packages(app: App, packages: list[RecordedPackage]) -> None:
    for item in packages:
        text = f"channel {item.channel}  {item.package} {item.version}"
        if item.installed is None:
            app.out.info(f"{text}  absent here; its tables are kept")
        else:
            app.out.info(text)


def _print_applied(app: App, names: list[str], packages: list[RecordedPackage]) -> None:
    if app.json:
        app.out.document({"applied": names, "packages": packages})
        return
    for name in names:
        app.out.print(line(f"{name}  ", styled("applied", "green")))
    if not names:
        app.out.info("the database is up to date")
    _print_packages(app, packages)


@command_group(
    "db",
    section="Setup",
    examples=("draftsman db status", "draftsman db psql -- -c 'select 1'"),
)
def db() -> None:
    """Manage the embedded PostgreSQL server.

    The server starts on first use and stops after a period without connections. These commands do
    not apply if DRAFTSMAN_DATABASE_URL or database_url is set.
    """


@db.subcommand("start")
async def start(app: App) -> None:
    """Start the server and migrate the database."""
    from draftsman.database import migrate as migrations

    server = _server(app)
    url = await asyncio.to_thread(server.ensure)
    await migrations.migrate(url)
    _print_url(app, url)


@db.subcommand("stop", examples=("draftsman db stop", "draftsman db stop --yes"))
@click.option(
    "--mode",
    type=click.Choice(["smart", "fast", "immediate"]),
    default="fast",
    show_default=True,
    help="smart waits for open connections; fast closes them.",
)
@params.yes_option
def stop(app: App, mode: str, yes: bool) -> None:
    """Stop the server; data is kept.

    While programs are connected, such as workers and dashboards, it names them and asks first. A
    program that connects later starts the server again.
    """
    server = _server(app)
    if not yes and mode != "smart" and (status := _with_clients(server)) is not None:
        question = f"Stop the server? It closes {_clients_text(status)}."
        confirm(app, question, yes=yes, required=True)
    stopped = server.stop(mode)  # type: ignore[arg-type]
    app.out.result({"stopped": stopped}, "stopped" if stopped else "the server was not running")


@db.subcommand("status")
def status(app: App) -> None:
    """Show the status of the server, without starting it."""
    server_status = _server(app).status()
    if app.json:
        app.out.document(as_data(server_status) | {"connections": server_status.connections})
        return
    running = f"running, pid {server_status.pid}"
    state = running if server_status.running else "stopped; starts on first use"
    version = server_status.version or str(server_status.major)
    app.out.print(
        line(f"PostgreSQL {version} ", styled(state, "bold")),
        f"  data         {server_status.data_dir}",
        f"  socket       {server_status.socket_dir}",
        *([f"  connections  {server_status.connections}"] if server_status.running else []),
    )


def _with_clients(server: EmbeddedServer) -> ServerStatus | None:
    """Return the status if programs are connected, and not only those that have just ended."""
    for delay in (*[ENDING / 10] * 10, 0):
        status = server.status()
        if not status.connections:
            return None
        time.sleep(delay)
    return status


def _clients_text(status: ServerStatus) -> str:
    """Return the connections with their programs: `3 connections: 2 of draftsman, 1 of psql`."""
    programs = ", ".join(f"{count} of {one_line(name)}" for name, count in status.clients.items())
    return f"{counted(status.connections, 'connection')}: {programs}"


@db.subcommand("url", examples=("draftsman db url", 'psql "$(draftsman db url)"'))
@click.option(
    "--show-password", is_flag=True, help="Include the password instead of a password file."
)
def url(app: App, show_password: bool) -> None:
    """Print the URL of the database; the server need not be running.

    The URL refers to a password file that psql, pg_dump and other libpq programs read.
    """
    server = _server(app)
    _print_url(app, server.secret_url() if show_password else server.url())


@db.subcommand(
    "psql", examples=("draftsman db psql", "draftsman db psql -- -c 'table draftsman.jobs'")
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def psql(app: App, arguments: tuple[str, ...]) -> None:
    """Open psql on the database; arguments after -- are passed to psql."""
    if app.json:
        raise UsageError("db psql has no --json; use: draftsman db psql -- --csv -c '…'")
    _server(app).psql(arguments)


@db.subcommand("dump", examples=("draftsman db dump draftsman.dump",))
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
async def dump(app: App, file: Path) -> None:
    """Write a dump of the database to a file, for `db restore`."""
    if not file.name:
        raise UsageError("FILE must be a file name")
    await asyncio.to_thread(_server(app).dump, file)
    size = file.stat().st_size
    app.out.result({"file": str(file), "size": size}, f"dumped {counted(size, 'byte')} to {file}")


@db.subcommand("restore", examples=("draftsman db restore draftsman.dump --yes",))
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@params.yes_option
async def restore(app: App, file: Path, yes: bool) -> None:
    """Replace the database with a dump.

    The restored database is migrated to this version and starts a new event epoch, so that earlier
    cursors do not skip events.
    """
    from draftsman.database import migrate as migrations

    server = _server(app)
    confirm(app, f"Replace all jobs in the database with {file}?", yes=yes, required=True)
    await asyncio.to_thread(server.restore, file)
    database_url = server.url()
    await migrations.migrate(database_url)
    epoch = await migrations.start_epoch(database_url)
    app.out.result(
        {"file": str(file), "epoch": epoch}, f"restored {file}; events are in epoch {epoch}"
    )


def _server(app: App) -> EmbeddedServer:
    """Return the embedded server; raises Refused if another server is configured."""
    settings = app.settings
    if settings.database_url is not None:
        origin = "DATABASE_URL" if settings.uses_fallback_url else "database_url"
        raise Refused(
            f"draftsman does not manage the configured database server ({origin} is set);"
            " use its own tools, such as psql and pg_dump"
        )
    from draftsman.database.server_url import embedded_server

    return embedded_server(settings)


def _print_url(app: App, database_url: str) -> None:
    if app.json:
        app.out.document({"url": database_url})
    else:
        app.out.write(f"{database_url}\n")
