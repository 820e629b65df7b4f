"""The policy with the identities that people have linked."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from draftsman.channels import LOG, WEBHOOK, ChannelName
from draftsman.database.database import Connection
from draftsman.people.policy import Policy
from draftsman.people.store import people as store

MAX_LINKS: Final = 10_000
"""Maximum number of identity links read."""


async def with_identity_links(
    conn: Connection, policy: Policy, channel: ChannelName | None = None
) -> Policy:
    """Return the policy extended by the linked identities of a channel, or of all."""
    if channel in (LOG, WEBHOOK):
        return policy
    people_by_name = dict(policy.people)
    for link in await store.links(conn, MAX_LINKS):
        person = people_by_name.get(link.person)
        if person is None or link.channel in person.ids or channel not in (None, link.channel):
            continue
        ids = {**person.ids, link.channel: link.external_id}
        people_by_name[link.person] = replace(person, ids=ids)
    return replace(policy, people=people_by_name)
