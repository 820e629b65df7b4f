"""The channel `httpchat`: rooms of a chat server, over its HTTP API."""

from __future__ import annotations

from draftsman.channels.plugin import ChannelFacts, ChannelPlugin, TargetSyntax


def parse(address: str) -> tuple[str, str | None]:
    """Return the room of an address; it has no threads."""
    if not address.isidentifier():
        raise ValueError("a room is a word of letters and digits: httpchat:ops")
    return address, None


CHANNEL = ChannelPlugin(
    name="httpchat",
    label="HTTP chat",
    settings="draftsman_httpchat.settings:HttpChatSettings",
    account="draftsman_httpchat.settings:HttpChatAccount",
    target=TargetSyntax(form="httpchat:ROOM", parse=parse),
    facts=ChannelFacts(accounts="account", has_bot=True, takes_answers=True, is_evidence=True),
    bot="draftsman_httpchat.bot:create",
)
