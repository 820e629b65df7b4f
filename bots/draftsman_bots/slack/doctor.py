"""Slack checks of `draftsman doctor`: tokens, scopes, Socket Mode, channels, clock."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Mapping
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Final

from slack_sdk.errors import SlackApiError

from draftsman.errors import ConfigError
from draftsman.formats.times import span
from draftsman_bots.process.checks import Check
from draftsman_bots.slack import credentials, scopes
from draftsman_bots.slack.identity import NETWORK, error_code
from draftsman_bots.slack.settings import SlackSettings
from draftsman_bots.slack.transport import http_app
from draftsman_bots.slack.transport.web_api import client

if TYPE_CHECKING:
    from slack_sdk.web.async_client import AsyncWebClient

    from draftsman.runtime import Runtime
    from draftsman.settings import Settings

TIMEOUT: Final = 10.0
"""Seconds for each call."""
MINIMAL: Final = "config/slack_manifest.minimal.yaml"
REINSTALL: Final = "paste the manifest into the app's settings and reinstall the app"
NOT_CHECKED: Final = (
    "not checked, because a bot token cannot read them: events, command {0}, shortcuts and"
    " interactivity; compare the App Manifest page at https://api.slack.com/apps with"
    " config/slack_manifest.*.yaml"
)
"""Only configuration tokens can read a manifest; scopes and Socket Mode are checked here."""


async def checks(settings: Settings, rt: Runtime | None) -> AsyncIterator[Check]:
    """Yield the results; raises nothing."""
    slack = SlackSettings.of(settings)
    if slack is None:
        return
    try:
        tokens = credentials.read(slack)
    except ConfigError as error:
        yield Check("fail", str(error), "where to find each token: draftsman help --page slack")
        return
    web = client(tokens.bot, slack.api_url, TIMEOUT)
    try:
        response = await web.auth_test()
    except SlackApiError as error:
        fix = "reinstall the app and set its new token"
        yield Check("fail", f"Slack rejected the bot token: {error_code(error)}", fix)
        return
    except NETWORK as error:
        fix = f"check that {slack.api_url} is reachable from this machine"
        yield Check("fail", f"cannot reach Slack: {type(error).__name__}", fix)
        return
    yield _team(slack, response.data)
    for check in (*_scopes(response.headers), *clock(response.headers, time.time())):
        yield check
    yield Check("ok", NOT_CHECKED.format(slack.command))
    if tokens.app:
        yield await _socket(web, tokens.app)
    for channel in slack.channels:
        yield await _channel(web, channel)


def _team(slack: SlackSettings, account: Any) -> Check:
    team = f"{account.get('team')} ({account.get('team_id')})"
    text = f"{account.get('user')} in {team}, mode {slack.mode}"
    if slack.team not in (None, account.get("team_id"), account.get("enterprise_id")):
        return Check(
            "fail", f"{text}; [slack] team is {slack.team}", "change the team or the token"
        )
    return Check("ok", text)


def _scopes(headers: Mapping[str, Any]) -> list[Check]:
    """Compare the token's scopes with those of the manifests."""
    granted_scopes = scopes.granted(headers) or frozenset()
    results = []
    if missing := [scope for scope in scopes.MINIMAL if scope not in granted_scopes]:
        results.append(Check("fail", f"missing scopes: {', '.join(missing)}", _manifest(MINIMAL)))
    elif partial := [scope for scope in scopes.FULL if scope not in granted_scopes]:
        if len(partial) < len(scopes.FULL) - len(scopes.MINIMAL):
            fix = _manifest("the full manifest")
            results.append(Check("warn", f"missing scopes: {', '.join(partial)}", fix))
        else:
            results.append(
                Check("ok", "minimal scopes: replies that mention the bot are read as answers")
            )
    else:
        results.append(Check("ok", "full scopes: replies in threads are read as answers"))
    if unused := sorted(granted_scopes - set(scopes.FULL)):
        text = f"unused scopes: {', '.join(unused)}"
        results.append(Check("warn", text, "remove them from the app's settings"))
    return results


def clock(headers: Mapping[str, Any], now: float) -> list[Check]:
    """Compare the clock with Slack's: signatures older than five minutes are rejected."""
    try:
        server_time = parsedate_to_datetime(str(_header(headers, "date"))).timestamp()
    except (ValueError, TypeError):
        return []
    skew = now - server_time
    if abs(skew) < http_app.MAX_AGE / 2:
        return []
    direction = "ahead of" if skew > 0 else "behind"
    text = f"clock skew: this machine's clock is {span(skew)} {direction} Slack's"
    return [Check("fail", text, "enable NTP on this machine")]


async def _socket(web: AsyncWebClient, app_token: str) -> Check:
    try:
        await web.apps_connections_open(app_token=app_token)
    except SlackApiError as error:
        fix = "enable Socket Mode in the app's settings; give app_token connections:write"
        return Check("fail", f"cannot open a Socket Mode connection: {error_code(error)}", fix)
    except NETWORK as error:
        return Check("fail", f"cannot open a Socket Mode connection: {type(error).__name__}")
    return Check("ok", "Socket Mode is enabled")


async def _channel(web: AsyncWebClient, channel: str) -> Check:
    try:
        response: Any = (await web.conversations_info(channel=channel)).data
        conversation = response.get("channel") or {}
    except SlackApiError as error:
        text = f"channel {channel}: {error_code(error)}"
        return Check("warn", text, "check the ID; if the channel is private, /invite the bot")
    except NETWORK as error:
        return Check("warn", f"channel {channel}: {type(error).__name__}")
    name = f"#{conversation.get('name')} ({channel})"
    if conversation.get("is_archived"):
        return Check("warn", f"{name} is archived", "remove it from [slack] channels")
    if not (conversation.get("is_member") or conversation.get("is_im")):
        return Check(
            "warn", f"the bot is not in {name}", "in that channel, type /invite @draftsman"
        )
    return Check("ok", f"the bot is in {name}")


def _manifest(manifest: str) -> str:
    return f"{manifest}: {REINSTALL}"


def _header(headers: Mapping[str, Any], name: str) -> Any:
    return next((value for key, value in headers.items() if key.lower() == name), None)
