"""Authentication by key and token in the header, the query or the body."""

from __future__ import annotations

import re
from typing import Final

from draftsman_testing.trello.api_errors import NO_PERMISSION, ApiError
from draftsman_testing.trello.entities import Json
from draftsman_testing.trello.world import World

PAIR: Final = re.compile(r'(oauth_consumer_key|oauth_token)="([^"]*)"')


def taken(header: str, query: Json, body: Json) -> tuple[str, str, str]:
    """Take key and token out of where they are; return both, and where they were.

    Where they were is `header`, `query`, `body`, several of them with a plus, or nothing.
    """
    credentials = {"oauth_consumer_key": "", "oauth_token": ""}
    places = []
    if header.startswith("OAuth "):
        credentials |= dict(PAIR.findall(header))
        places.append("header")
    for name, arguments in (("query", query), ("body", body)):
        given = {
            "oauth_consumer_key": arguments.pop("key", ""),
            "oauth_token": arguments.pop("token", ""),
        }
        if any(given.values()):
            places.append(name)
        credentials = {key: str(credentials[key] or given[key]) for key in credentials}
    return credentials["oauth_consumer_key"], credentials["oauth_token"], "+".join(places)


def check(world: World, key: str, token: str) -> None:
    """Reject unknown credentials; `invalid key` comes first."""
    if key != world.key:
        raise ApiError(401, "invalid key")
    if not token:
        raise ApiError(401, NO_PERMISSION)
    if token != world.token or world.revoked:
        raise ApiError(401, "invalid token")
