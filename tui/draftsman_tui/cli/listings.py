"""Commands of the listings that have no command of their own."""

from __future__ import annotations

from typing import Any

from draftsman.entities.entity import Entity, Listing
from draftsman.entities.registry import listings
from draftsman_tui.cli.app import SECTIONS, App, command
from draftsman_tui.cli.lists import print_list

MAX_ROWS = 1000
"""Maximum number of rows."""


def _declare(listing: Listing[Any], entity: Entity[Any]) -> None:
    async def print_rows(app: App) -> None:
        async with app.runtime(read_only=True) as rt:
            rows = await listing.read(rt, MAX_ROWS)
        print_list(app, entity, rows)

    print_rows.__doc__ = f"List {listing.help[0].lower()}{listing.help[1:]}"
    example = f"draftsman {listing.name}"
    section = next(section for section in SECTIONS if section == listing.section)
    declare = command(
        listing.name, section=section, examples=(example, f"{example} --json"), lists=entity
    )
    declare(print_rows)


for _listing, _entity in listings().values():
    if _listing.section:
        _declare(_listing, _entity)
