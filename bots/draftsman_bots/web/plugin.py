"""The declaration of the web inbox as a channel."""

from __future__ import annotations

from draftsman.channels.plugin import ChannelFacts, ChannelPlugin

WEB = ChannelPlugin(
    name="web",
    label="Web inbox",
    doctor="draftsman_bots.web.doctor:checks",
    settings="draftsman_bots.web.settings:WebSettings",
    bot_label="Web inbox",
    facts=ChannelFacts(accounts="person", has_bot=True),
    requires=("jinja2", "joserfc", "segno", "starlette", "uvicorn"),
)
