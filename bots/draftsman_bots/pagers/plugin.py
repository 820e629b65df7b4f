"""The declaration of pagers as a channel."""

from __future__ import annotations

from typing import TYPE_CHECKING

from draftsman.channels.plugin import ChannelFacts, ChannelPlugin, TargetSyntax

if TYPE_CHECKING:
    from draftsman.settings import Settings


def _parse(address: str) -> tuple[str, str | None]:
    return address, None


def _missing(settings: Settings, target: str | None) -> str | None:
    from draftsman_bots.pagers.settings import webhook_pagers

    if webhook_pagers(settings):
        return None
    return "listen to [pagers.NAME] (draftsman help --page attention-ladder)"


PAGER = ChannelPlugin(
    name="pager",
    label="Pagers",
    table="pagers",
    docs="draftsman help --page attention-ladder",
    settings="draftsman_bots.pagers.settings:PagerSettings",
    account="draftsman_bots.pagers.settings:PagerAccount",
    target=TargetSyntax(form="pager:NAME", parse=_parse, only_critical=True),
    missing=_missing,
    worker_channel="draftsman_bots.pagers.channel:worker_channel",
    doctor="draftsman_bots.pagers.doctor:checks",
    bot="draftsman_bots.pagers.service:PagerService",
    bot_label="receiver of pager webhooks",
    facts=ChannelFacts(accounts="account", has_bot=True, has_alerts=True, serves_targets=True),
    migrations="draftsman_bots.pagers.migrations",
    sentences="draftsman_bots.pagers.sentences",
    requires=("starlette", "uvicorn", "prometheus_client"),
)
