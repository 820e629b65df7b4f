"""The bot's identity in Slack, resolved once at startup, outside of any request."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import aiohttp
from slack_sdk.errors import SlackApiError

from draftsman.processes.lifecycle import StopSignal
from draftsman_bots.json_fields import string
from draftsman_bots.slack import scopes
from draftsman_bots.slack.health import BotHealth

if TYPE_CHECKING:
    from slack_sdk.web.async_client import AsyncWebClient

BACKOFF: Final = (1.0, 2.0, 5.0, 15.0, 60.0)
"""Seconds between attempts to resolve the identity; the last repeats."""
NETWORK: Final = (aiohttp.ClientError, OSError, TimeoutError)
PROBLEM: Final = "identity"
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Identity:
    """The bot's own ids; None until Slack returned them."""

    team: str | None = None
    enterprise: str | None = None
    bot_user: str | None = None
    bot_id: str | None = None
    colleagues: set[str] = field(default_factory=set)
    """Verified workspaces of the organization, and verified members as `U…@T…`."""
    scopes: frozenset[str] | None = None
    """Scopes of the token."""

    @property
    def reads_replies(self) -> bool:
        """Whether replies that do not mention the bot arrive: the full manifest."""
        return (self.scopes or frozenset()) >= scopes.REPLIES

    @property
    def reads_reactions(self) -> bool:
        """Whether reactions to messages arrive: the full manifest."""
        return "reactions:read" in (self.scopes or ())

    @property
    def is_agent(self) -> bool:
        """Whether a direct conversation with the bot is one with an agent: the full manifest."""
        return "assistant:write" in (self.scopes or ())

    def read_scopes(self, headers: Mapping[str, Any]) -> None:
        """Read the scopes from a response; a reinstalled app may have others."""
        self.scopes = scopes.granted(headers) or self.scopes

    def update(self, data: Mapping[str, Any]) -> None:
        """Set the ids from a response of auth.test."""
        self.team = _id(data, "team_id")
        self.enterprise = _id(data, "enterprise_id")
        self.bot_user = _id(data, "user_id")
        self.bot_id = _id(data, "bot_id")


async def resolve_identity(
    identity: Identity,
    client: AsyncWebClient,
    health: BotHealth,
    stop: StopSignal,
    team: str | None,
) -> None:
    """Call auth.test until it succeeds; a rejected token is a problem, and retried."""
    health.pending(PROBLEM, "the bot token is not verified yet")
    for attempt in range(10**9):
        try:
            answer = await client.auth_test()
            identity.update(answer.data)  # type: ignore[arg-type]
            identity.read_scopes(answer.headers)
        except SlackApiError as error:
            health.problem(PROBLEM, f"Slack rejected the bot token: {error_code(error)}")
        except NETWORK as error:
            health.problem(PROBLEM, f"cannot reach Slack: {type(error).__name__}")
        else:
            if team is not None and team not in (identity.team, identity.enterprise):
                mismatch = f"the bot token belongs to {identity.team}, but [slack] team is {team}"
                health.problem(PROBLEM, f"{mismatch}: change the token or the setting")
            else:
                health.clear(PROBLEM)
            return
        if await stop.wait(BACKOFF[min(attempt, len(BACKOFF) - 1)]):
            return


def error_code(error: SlackApiError) -> str:
    """Return Slack's error code, or the HTTP status if there is none."""
    response = error.response
    try:
        code = response["error"]
    except (KeyError, TypeError, ValueError):
        code = None
    return str(code) if code else f"HTTP {getattr(response, 'status_code', '?')}"


def _id(data: Mapping[str, Any], key: str) -> str | None:
    return string(data, key) or None
