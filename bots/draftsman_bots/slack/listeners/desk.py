"""What every listener needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

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
