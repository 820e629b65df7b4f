"""The files of migrations in a database: those that were applied, and those that are newer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TypeAlias

from draftsman.database import schema
from draftsman.database.database import Connection
from draftsman.database.migration_files import Migration, channels_of, load_files
from draftsman.errors import CommandHint, SchemaOutdated

Records: TypeAlias = Mapping[str, tuple[str | None, datetime]]
"""Checksum and time of applied files, by name."""


@dataclass(frozen=True, slots=True)
class SchemaState:
    """The files with the times at which they were applied, and what is wrong with packages."""

    migrations: list[Migration]
    newer: Mapping[str, str]
    """By channel, a file of the database that this version does not know; of draftsman: ""."""
    problems: dict[str, str]
    """By channel, why its package cannot be migrated."""

    @property
    def pending(self) -> list[Migration]:
        """The files that were not applied."""
        return [item for item in self.migrations if item.applied_at is None]

    @property
    def own_newer(self) -> str | None:
        """A file of draftsman or of its channels that this version does not know."""
        own = {item.channel for item in self.migrations if item.is_own}
        return next((name for channel, name in self.newer.items() if channel in own), None)

    @property
    def warnings(self) -> list[str]:
        """What is wrong with packages, and which of them are older than the database."""
        others = {item.channel: item.source for item in self.migrations if not item.is_own}
        newer = [
            f"the database is newer than the {others[channel]} (it has {name})"
            for channel, name in self.newer.items()
            if channel in others
        ]
        return [*self.problems.values(), *newer]


async def known_state(conn: Connection, files: list[Migration] | None = None) -> SchemaState:
    """Return the state as `state_of` does; raises SchemaOutdated if it is newer."""
    state = await state_of(conn, files)
    if newer := state.own_newer:
        raise SchemaOutdated(
            f"the database is newer than this version (it has {newer}); upgrade draftsman"
        )
    return state


async def compatible_state(conn: Connection) -> SchemaState:
    """Return the state; raises SchemaOutdated if files of draftsman are pending."""
    state = await state_of(conn)
    refuse_pending([item for item in state.pending if item.is_own])
    return state


def refuse_pending(pending: Sequence[Migration]) -> None:
    """Raise SchemaOutdated, naming the files, if there are any."""
    if pending:
        names = ", ".join(item.name for item in pending)
        raise SchemaOutdated(
            f"pending migrations: {names}", hint=CommandHint("migrate", lead="run")
        )


async def state_of(conn: Connection, files: list[Migration] | None = None) -> SchemaState:
    """Return the files, by default all, with their times, and newer files of the database.

    An edited file of draftsman raises SchemaOutdated; that of a package is its problem.
    """
    applied = await schema.applied(conn)
    functions = await schema.applied_functions(conn)
    newer = dict[str, str]()
    files, problems = (files, {}) if files is not None else load_files()
    migrations = list[Migration]()
    for channel in channels_of(files):
        known = [item for item in files if item.channel == channel]
        of_channel = {n: a for n, a in applied.items() if channel == n.rpartition("/")[0]}
        unknown = max(of_channel.keys() - {item.name for item in known}, default=None)
        if unknown is not None:
            newer[channel] = unknown
        is_newer = channel in newer or (known[0].is_own and "" in newer)
        try:
            migrations += list(_applied(known, of_channel, functions, is_newer=is_newer))
        except SchemaOutdated as error:
            if known[0].is_own:
                raise
            problems[channel] = f"{known[0].source}: {error}"
            migrations += known
    order = {item.name: place for place, item in enumerate(files)}
    return SchemaState(sorted(migrations, key=lambda item: order[item.name]), newer, problems)


def _applied(
    files: Sequence[Migration], applied: Records, functions: Records, *, is_newer: bool
) -> Iterator[Migration]:
    """Yield the files of a package with the times at which they were applied.

    A file of functions is pending if its text has changed. Without a checksum, psql applied it: it
    is pending unless that was after the newest number. A newer database has the functions of its
    version, and none is pending.
    """
    newest = max((at for _, at in applied.values()), default=None)
    numbered_pending = any(not i.has_functions and i.name not in applied for i in files)
    for item in files:
        if not item.has_functions:
            checksum, at = applied.get(item.name, (None, None))
            if checksum not in (None, item.checksum):
                raise SchemaOutdated(
                    f"migration {item.name} was edited after it was applied;"
                    " revert the edit and put the change into a new file"
                )
        else:
            checksum, at = functions.get(item.name, (None, None))
            by_hand = checksum is None and at is not None and newest is not None and at >= newest
            if is_newer:
                at = at or newest
            elif not (checksum == item.checksum or (by_hand and not numbered_pending)):
                at = None
        yield replace(item, applied_at=at)
