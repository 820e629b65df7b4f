"""`migrate` and `db`: the schema, and the server that draftsman starts itself."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import click

from draftsman.errors import Refused, UsageError
from draftsman_tui.cli import prompts
from draftsman_tui.cli.app import App, Group, command, example_lines
from draftsman_tui.common.output import line, styled

if TYPE_CHECKING:
    from draftsman.embedded import EmbeddedServer
    from draftsman.migrate import Migration


@command(
    "migrate",
    examples=("draftsman migrate", "draftsman migrate --sql | psql -1 $DRAFTSMAN_DATABASE_URL"),
)
@click.option("--check", is_flag=True, help="Change nothing; exit with 6 if something is missing.")
@click.option("--sql", is_flag=True, help="Change nothing; print the SQL of what is missing.")
@click.option("--restored", is_flag=True, help="After a dump was restored: a new epoch of events.")
@click.option("--grant", is_flag=True, help="Only give the group roles their rights again.")
@click.option("--yes", is_flag=True, help="Import the configuration's people without asking.")
async def migrate(app: App, check: bool, sql: bool, restored: bool, grant: bool, yes: bool) -> None:
    """Bring the database to this version.

    A server never migrates by itself; the embedded database does. Several at once are safe: one
    does the work. Workers may go on meanwhile: what needs a table that somebody holds for long
    gives up after two seconds and tries again, for five minutes.
    """
    from draftsman import migrate as migrations
    from draftsman.runtime import database_url

    if check + sql + restored + grant > 1:
        raise UsageError("give one of --check, --sql, --restored, --grant")
    url, embedded = await database_url(app.settings, migrations=False)
    if grant:
        if statements := await migrations.grant(url):
            raise Refused(migrations.ROLES_HINT.format(statements))
        app.out.info("the group roles have their rights")
    elif sql:
        _print_sql(
            app, [one for one in await migrations.applied_migrations(url) if one.applied_at is None]
        )
    elif check:
        _print_state(app, await migrations.applied_migrations(url))
        await migrations.check(url)
    elif restored:
        _print_epoch(app, await migrations.start_epoch(url))
    else:
        _print_applied(app, await migrations.migrate(url, app.out.info))
        if not embedded:
            await _import_people(app, yes)


async def _import_people(app: App, yes: bool) -> None:
    """Offer to write the configuration's people into a server's database."""
    from draftsman.configured import directory
    from draftsman_tui.cli.setup.people import change

    new = directory(app.settings)
    if not new:
        return
    async with app.runtime() as rt:
        if not (await rt.people.directory()).changes(new):
            return
        if yes or (app.out.interactive and not app.json):
            await change(app, rt, new, yes=yes)
        else:
            app.out.info("people of the configuration are not in the database: people import")


def _print_sql(app: App, missing: list[Migration]) -> None:
    if app.json:
        app.out.document([{"name": one.name, "sql": one.sql} for one in missing])
    elif not missing:
        app.out.info("nothing is missing")
    for one in missing if not app.json else ():
        app.out.write(f"-- {one.name}\n{one.sql.rstrip()}\n\n")


def _print_state(app: App, found: list[Migration]) -> None:
    if app.json:
        app.out.document([{"name": one.name, "applied_at": one.applied_at} for one in found])
        return
    for one in found:
        state = styled("applied", "green") if one.applied_at else styled("missing", "red")
        app.out.print(line(f"{one.name}  ", state))


def _print_epoch(app: App, epoch: int) -> None:
    if app.json:
        app.out.document({"epoch": epoch})
    else:
        app.out.print(f"the feed of events is in epoch {epoch}; cursors from before still hold")


def _print_applied(app: App, names: list[str]) -> None:
    if app.json:
        app.out.document({"applied": names})
        return
    for name in names:
        app.out.print(line(f"{name}  ", styled("applied", "green")))
    if not names:
        app.out.info("nothing to do: the database is up to date")


@click.group(
    cls=Group,
    name="db",
    epilog=example_lines(("draftsman db status", "draftsman db psql -- -c 'select 1'")),
)
def db() -> None:
    """Control the embedded PostgreSQL.

    It starts on first need and stops by itself when it was idle for a while. These commands are
    for that server alone: where DRAFTSMAN_DATABASE_URL or database_url is set there is none.
    """


@command("start")
async def start(app: App) -> None:
    """Start the server, and bring it to this version."""
    from draftsman import migrate as migrations

    server = _server(app)
    url = await asyncio.to_thread(server.ensure)
    await migrations.migrate(url)
    _print_url(app, url)


@command("stop")
@click.option(
    "--mode",
    type=click.Choice(["smart", "fast", "immediate"]),
    default="fast",
    show_default=True,
    help="smart waits for connections to end, fast ends them.",
)
def stop(app: App, mode: str) -> None:
    """Stop the server; the data stays."""
    stopped = _server(app).stop(mode)  # type: ignore[arg-type]
    if app.json:
        app.out.document({"stopped": stopped})
    else:
        app.out.print("stopped" if stopped else "it was not running")


@command("status")
def status(app: App) -> None:
    """Say whether the server runs, where, and who is connected. Starts nothing."""
    found = _server(app).status()
    if app.json:
        app.out.document(found)
        return
    state = f"runs, pid {found.pid}" if found.running else "is stopped; it starts on first need"
    app.out.print(
        line("PostgreSQL ", found.version or str(found.major), " ", styled(state, "bold")),
        f"  data         {found.data_dir}",
        f"  socket       {found.socket_dir}",
        *([f"  connections  {found.connections}"] if found.running else []),
    )


@command("url", examples=("draftsman db url", 'psql "$(draftsman db url)"'))
@click.option(
    "--show-password", is_flag=True, help="Put the password in the URL, not the path of its file."
)
def url(app: App, show_password: bool) -> None:
    """Print the URL of the database, whether or not the server runs.

    It names the file that holds the password: psql, pg_dump and whatever else uses libpq read it.
    """
    server = _server(app)
    _print_url(app, server.secret_url() if show_password else server.url())


@command(
    "psql",
    examples=("draftsman db psql", "draftsman db psql -- -c 'table draftsman.jobs'"),
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def psql(app: App, arguments: tuple[str, ...]) -> None:
    """Open psql on the database; what follows -- is passed to it."""
    if app.json:
        raise UsageError("psql has no --json; use: draftsman db psql -- --csv -c '…'")
    _server(app).psql(arguments)


@command("dump", examples=("draftsman db dump draftsman.dump",))
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
async def dump(app: App, file: Path) -> None:
    """Write the whole database to a file, which `db restore` reads."""
    if not file.name:
        raise UsageError("give the name of a file to write")
    await asyncio.to_thread(_server(app).dump, file)
    size = file.stat().st_size
    if app.json:
        app.out.document({"file": str(file), "size": size})
    else:
        app.out.print(f"wrote {size:,} bytes to {file}")


@command("restore", examples=("draftsman db restore draftsman.dump --yes",))
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
async def restore(app: App, file: Path, yes: bool) -> None:
    """Replace the whole database by what a dump holds.

    Afterwards it is brought to this version, and the feed of events starts a new epoch, so that no
    cursor from before skips an event.
    """
    from draftsman import migrate as migrations

    server = _server(app)
    if not yes:
        if not app.out.interactive:
            raise UsageError("this replaces every job there is; say so with --yes")
        prompts.confirm(f"replace every job there is by {file}?")
    await asyncio.to_thread(server.restore, file)
    where = server.url()
    await migrations.migrate(where)
    epoch = await migrations.start_epoch(where)
    if app.json:
        app.out.document({"file": str(file), "epoch": epoch})
    else:
        app.out.print(f"restored from {file}; the feed of events is in epoch {epoch}")


for _each in (start, stop, status, url, psql, dump, restore):
    db.add_command(_each)


def _server(app: App) -> EmbeddedServer:
    """Return the embedded server; raises Refused where another is configured."""
    settings = app.settings
    if settings.database_url is not None:
        raise Refused(
            "the database is a server of its own (database_url is set), which draftsman does not"
            " control; use its own tools, such as psql and pg_dump"
        )
    from draftsman.embedded import EmbeddedServer

    return EmbeddedServer(settings.data_dir, settings.embedded.idle_stop)


def _print_url(app: App, where: str) -> None:
    if app.json:
        app.out.document({"url": where})
    else:
        app.out.write(f"{where}\n")
