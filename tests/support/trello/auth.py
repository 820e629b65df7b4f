"""Authentication by key and token in the header, the query or the body."""

from __future__ import annotations

import re
from typing import Final

from tests.support.trello.api_errors import NO_PERMISSION, ApiError
from tests.support.trello.entities import Json
from tests.support.trello.world import World

PAIR: Final = re.compile(r'(oauth_consumer_key|oauth_token)="([^"]*)"')


def taken(header: str, query: Json, body: Json) -> tuple[str, str, str]:
    """Take key and token out of where they are; return both, and where they were.

    Where they were is `header`, `query`, `body`, several of them with a plus, or nothing.
    """
    found = {"oauth_consumer_key": "", "oauth_token": ""}
    where = []
    if header.startswith("OAuth "):
        found |= dict(PAIR.findall(header))
        where.append("header")
    for name, place in (("query", query), ("body", body)):
        said = {"oauth_consumer_key": place.pop("key", ""), "oauth_token": place.pop("token", "")}
        if any(said.values()):
            where.append(name)
        found = {one: str(found[one] or said[one]) for one in found}
    return found["oauth_consumer_key"], found["oauth_token"], "+".join(where)


def check(world: World, key: str, token: str) -> None:
    """Reject unknown credentials; `invalid key` comes first."""
    if key != world.key:
        raise ApiError(401, "invalid key")
    if not token:
        raise ApiError(401, NO_PERMISSION)
    if token != world.token or world.revoked:
        raise ApiError(401, "invalid token")
