"""The declaration of forges as a channel: issues and pull requests."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

from draftsman.channels.plugin import ChannelFacts, ChannelPlugin, TargetSyntax
from draftsman.forges.issue_target import IssueTarget

if TYPE_CHECKING:
    from draftsman.settings import Settings


def _parse(address: str) -> tuple[str, str | None]:
    return IssueTarget.of(address).target, None


def _page(settings: Settings, target: str, ref: str | None) -> str | None:
    """Return the URL of a comment, on a forge that this process knows."""
    issue = IssueTarget.of(target)
    forge = settings.forges.get(issue.forge)
    if forge is None or not forge.usable:
        return None
    page = forge.plugin.page_of(issue.number, ref, is_pull=issue.is_pull)
    return f"{forge.url}/{quote(issue.path)}/{page}"


def _missing(settings: Settings, target: str | None) -> str | None:
    if target is None:
        is_read, name = bool(settings.read_forges), "NAME"
    else:
        name = IssueTarget.of(target).forge
        is_read = name in settings.read_forges
    return None if is_read else f"events to [forges.{name}] (draftsman help --page follow-ups)"


def _live_names(settings: Settings) -> list[str]:
    """Return the names of the forges, and of their kinds."""
    kinds = (table.kind for table in settings.forges.values())
    return list(dict.fromkeys((*settings.forges, *kinds)))


FORGE = ChannelPlugin(
    name="forge",
    label="Forges",
    table="forges",
    docs="draftsman help --page forges",
    account="draftsman_bots.forges.settings:ForgeAccount",
    target=TargetSyntax(form="forge:NAME/OWNER/REPO#NUMBER", parse=_parse, page=_page),
    missing=_missing,
    live_checks="draftsman_bots.forges.live_checks:LIVE_CHECKS",
    live_names=_live_names,
    bot="draftsman_bots.forges.service:ForgeService",
    bot_label="receiver of forge events",
    facts=ChannelFacts(
        accounts="account",
        has_bot=True,
        takes_answers=True,
        is_evidence=True,
        shows_changes=True,
        binds_accounts=True,
    ),
    requires=("starlette", "uvicorn", "prometheus_client"),
)
