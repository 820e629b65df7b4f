"""Shared dependencies of the Slack listeners and use cases."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING

from draftsman_bots.conversation.attachments import AttachmentDownloads
from draftsman_bots.process.background import BackgroundTasks
from draftsman_bots.slack.identity import Identity
from draftsman_bots.slack.people.user import Company
from draftsman_bots.slack.requests.duplicates import DuplicateLookups
from draftsman_bots.slack.transport.attachment_download import download
from draftsman_bots.slack.transport.web_api import WebApi

if TYPE_CHECKING:
    from slack_sdk.web.async_client import AsyncWebClient

    from draftsman.runtime import Runtime
    from draftsman_bots.slack.settings import SlackSettings


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

    @cached_property
    def duplicates(self) -> DuplicateLookups:
        """Lookups of recent requests like a new one."""
        return DuplicateLookups(self.rt.submissions, self.background)

    @cached_property
    def downloads(self) -> AttachmentDownloads:
        """Downloads of the files of requests; the service runs them."""
        timeout = self.rt.settings.notifications.timeout
        web_api = WebApi(self.client, timeout, identity=self.identity)
        return AttachmentDownloads(
            self.rt.attachments, "slack", partial(download, web_api, self.identity)
        )

    @property
    def company(self) -> Company:
        """The company of the bot's workspace."""
        known = self.identity
        org = None if known.team is None else known.enterprise or ""
        return Company(self.settings.team or known.team, org, known.colleagues)
