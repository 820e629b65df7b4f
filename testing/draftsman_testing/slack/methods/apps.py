"""apps.*: the URL of a socket, which is valid once."""

from __future__ import annotations

from draftsman_testing.slack.methods.registry import Args, method
from draftsman_testing.slack.world import Json, World


@method("apps.connections.open", token="app")
def connections_open(world: World, args: Args) -> Json:
    """Return the URL of a new socket."""
    ticket = world.id("K")
    world.tickets.add(ticket)
    url = world.base.replace("http://", "ws://", 1)
    return {"url": f"{url}/link?ticket={ticket}&app_id={world.app}"}
