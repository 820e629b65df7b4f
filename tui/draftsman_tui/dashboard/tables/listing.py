"""Tables of the listings that have no table of their own."""

from __future__ import annotations

from typing import Any

from draftsman.entities.entity import Entity, Listing
from draftsman.runtime import Runtime
from draftsman_tui.dashboard.tables.filter import FilterFields
from draftsman_tui.dashboard.tables.resource import Query, Resource, Rows


def table_of(listing: Listing[Any], entity: Entity[Any]) -> type[Resource[Any]]:
    """Return the table of a listing."""
    definition = entity

    class ListingResource(Resource[Any]):
        name = listing.name
        help = listing.help.partition("\n")[0]
        entity = definition

        async def read(self, rt: Runtime, query: Query) -> Rows[Any]:
            return Rows(await listing.read(rt, query.limit))

        def key(self, row: Any) -> str:
            return listing.key(row)

        def filter_fields(self, row: Any) -> FilterFields:
            return FilterFields(listing.key(row))

    return ListingResource
