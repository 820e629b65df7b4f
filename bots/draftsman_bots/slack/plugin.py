"""The declaration of the channel Slack."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode

from draftsman.channels.plugin import ChannelFacts, ChannelPlugin, ChannelQuestions, TargetSyntax

if TYPE_CHECKING:
    from draftsman.settings import Settings

_TS: Final = re.compile(r"[0-9]{1,20}\.[0-9]{1,10}")


def _parse(address: str) -> tuple[str, str | None]:
    """Refuse names, which can be reused for another channel, and wrong threads."""
    channel, _, thread = address.partition("/")
    if not channel.isalnum() or not channel.isascii():
        raise ValueError(
            "use the channel's id, C0…, which Slack shows at the end of 'View channel details', or"
            " a member's id, U0…"
        )
    if thread and not _TS.fullmatch(thread):
        raise ValueError("a thread is a message's ts, such as 1700000000.000100")
    return channel, thread or None


def page_url(settings: Settings, target: str, ref: str | None) -> str | None:
    """Return a URL that redirects a signed-in user to the message."""
    if not ref:
        return None
    channel, _, ts = ref.partition("/")
    from draftsman_bots.slack.settings import SlackSettings

    slack = SlackSettings.of(settings)
    fields = {"channel": channel, "message_ts": ts, "team": slack and slack.team}
    query = {name: value for name, value in fields.items() if value}
    return f"https://slack.com/app_redirect?{urlencode(query)}"


SLACK = ChannelPlugin(
    name="slack",
    label="Slack",
    docs="draftsman help --page slack",
    doctor="draftsman_bots.slack.doctor:checks",
    live_checks="draftsman_bots.slack.live_checks:LIVE_CHECKS",
    settings="draftsman_bots.slack.settings:SlackSettings",
    account="draftsman_bots.slack.settings:SlackAccount",
    questions=ChannelQuestions(
        comment="The Slack app, by Socket Mode: no public address is needed.",
        secrets={"bot_token": "SLACK_BOT_TOKEN", "app_token": "SLACK_APP_TOKEN"},
        account="Slack member ID (profile, ⋮, Copy member ID)",
        account_form="[UW][A-Z0-9]{1,30}",
    ),
    target=TargetSyntax(form="slack:CHANNEL", parse=_parse, page=page_url),
    takes_files=True,
    bot="draftsman_bots.slack.service:create",
    # Slack waits three seconds for an acknowledgment; LISTENER_TIMEOUT of the dispatcher is later,
    # because the server cancels a statement sooner than a process that connects for it.
    statement_timeout=2.0,
    facts=ChannelFacts(
        accounts="account",
        has_bot=True,
        is_chat=True,
        takes_answers=True,
        is_evidence=True,
        changes_rules=True,
        person_target="^[^@]+",  # the user; an account may also have the id of its company
    ),
    requires=("slack_bolt", "aiohttp", "starlette", "uvicorn", "prometheus_client"),
)
