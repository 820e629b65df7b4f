"""What every listener needs."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from draftsman_bots.background import BackgroundTasks
from draftsman_bots.slack.identity import Identity

if TYPE_CHECKING:
    from slack_sdk.web.async_client import AsyncWebClient

    from draftsman.runtime import Runtime
    from draftsman.settings.chat import SlackSettings


@dataclass(frozen=True)
class BotContext:
    """The services, what is configured, and Slack itself."""

    rt: Runtime
    settings: SlackSettings
    client: AsyncWebClient
    identity: Identity = field(default_factory=Identity)
    """Whose the bot is, once Slack has said it."""
    background: BackgroundTasks = field(default_factory=BackgroundTasks)
    """What is done beside; whoever stops gives it a little time: `aside.close()`."""

    @property
    def own(self) -> tuple[str | None, str | None, Collection[str]]:
        """The workspace whose people are at home here, its organization, and its others.

        None: not known.
        """
        if self.identity.team is None:
            return self.settings.team, None, self.identity.colleagues
        own = self.settings.team or self.identity.team
        return own, self.identity.enterprise or "", self.identity.colleagues
