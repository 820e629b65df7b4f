"""Shared dependencies of the Slack listeners and use cases."""

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
    """Services, settings, client, identity and background tasks of the bot."""

    rt: Runtime
    settings: SlackSettings
    client: AsyncWebClient
    identity: Identity = field(default_factory=Identity)
    """The bot's own identity; its fields are None until Slack returned them."""
    background: BackgroundTasks = field(default_factory=BackgroundTasks)
    """Its owner calls `background.close()` at shutdown."""

    @property
    def company(self) -> tuple[str | None, str | None, Collection[str]]:
        """The home workspace, its organization, and the ids of colleagues.

        None stands for unknown.
        """
        if self.identity.team is None:
            return self.settings.team, None, self.identity.colleagues
        home = self.settings.team or self.identity.team
        return home, self.identity.enterprise or "", self.identity.colleagues
