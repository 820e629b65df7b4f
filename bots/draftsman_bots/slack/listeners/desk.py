"""What every listener needs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from draftsman_bots.aside import Aside

if TYPE_CHECKING:
    from slack_sdk.web.async_client import AsyncWebClient

    from draftsman.runtime import Runtime
    from draftsman.settings.chat import SlackSettings


@dataclass(frozen=True)
class Desk:
    """The services, what is configured, and Slack itself."""

    rt: Runtime
    settings: SlackSettings
    client: AsyncWebClient
    aside: Aside = field(default_factory=Aside)
    """What is done beside; whoever stops gives it a little time: `aside.close()`."""
