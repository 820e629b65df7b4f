"""The declaration of pagers as a channel."""

from __future__ import annotations

from typing import TYPE_CHECKING

from draftsman.channels.plugin import ChannelFacts, ChannelPlugin, TargetSyntax

if TYPE_CHECKING:
    from draftsman.settings import Settings


def _parse(address: str) -> tuple[str, str | None]:
    return address, None


def _missing(settings: Settings, target: str | None) -> str | None:
    from draftsman.settings.attention import webhook_pagers

    if webhook_pagers(settings.pagers):
        return None
    return "listen to [pagers.NAME] (docs/attention-ladder.md)"


PAGER = ChannelPlugin(
    name="pager",
    label="Pagers",
    table="pagers",
    account="draftsman_bots.pagers.settings:PagerAccount",
    target=TargetSyntax(form="pager:NAME", parse=_parse, only_critical=True),
    missing=_missing,
    doctor="draftsman_bots.pagers.doctor:checks",
    bot="draftsman_bots.pagers.service:PagerService",
    bot_label="receiver of pager webhooks",
    facts=ChannelFacts(accounts="account", has_bot=True, serves_targets=True),
    requires=("starlette", "uvicorn", "prometheus_client"),
)
