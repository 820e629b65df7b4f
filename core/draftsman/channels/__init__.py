"""Channels: the places where people write and read, each a plugin of its own."""

from __future__ import annotations

import re
from typing import Final

ChannelName = str
"""Where a request, an answer or a message comes from or goes to: a channel, or a `Source`."""
CHANNEL_NAME: Final = re.compile(r"[a-z][a-z0-9_-]{0,39}")
LOG: Final = "log"
WEBHOOK: Final = "webhook"
