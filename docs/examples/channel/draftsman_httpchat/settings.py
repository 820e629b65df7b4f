"""The table of the channel in the configuration, and its accounts of people."""

from __future__ import annotations

from draftsman.settings.section import ChannelSection, Section
from pydantic import Field


class HttpChatSettings(ChannelSection):
    """A chat server with an HTTP API."""

    table = "httpchat"

    url: str = Field(examples=["http://127.0.0.1:8000"])
    """Address of the server."""


class HttpChatAccount(Section):
    """An account of a person."""

    httpchat: str | None = Field(None, examples=["anna"])
    """Name of the person on the chat server. Unset: not there."""
