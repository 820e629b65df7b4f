"""The declaration of the channel Trello."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from draftsman.channels.plugin import (
    ChannelCommand,
    ChannelFacts,
    ChannelPlugin,
    ChannelQuestions,
    TargetSyntax,
)

if TYPE_CHECKING:
    from draftsman.settings import Settings

_ID: Final = re.compile(r"[0-9a-f]{24}")


def _parse(address: str) -> tuple[str, str | None]:
    if not _ID.fullmatch(address):
        raise ValueError(
            "use the card's id, 24 hexadecimal digits: the first `id` at the card's URL with .json"
            " appended"
        )
    return address, None


def _page(settings: Settings, target: str, ref: str | None) -> str:
    anchor = f"#comment-{quote(ref)}" if ref else ""
    return f"https://trello.com/c/{quote(target)}{anchor}"


TRELLO = ChannelPlugin(
    name="trello",
    label="Trello",
    docs="draftsman help --page trello",
    commands=(
        ChannelCommand(
            name="boards",
            summary="Manage Trello boards and their label rules.",
            target="draftsman_bots.trello.command_line.boards:boards",
        ),
    ),
    doctor="draftsman_bots.trello.doctor:checks",
    live_checks="draftsman_bots.trello.live_checks:LIVE_CHECKS",
    settings="draftsman_bots.trello.settings:TrelloSettings",
    account="draftsman_bots.trello.settings:TrelloAccount",
    questions=ChannelQuestions(
        comment="The account of the bot in Trello. A board is added with: draftsman boards add URL",
        secrets={"key": "TRELLO_KEY", "token": "TRELLO_TOKEN"},
        account="Trello member id (draftsman link also stores it)",
        account_form=_ID.pattern,
    ),
    target=TargetSyntax(form="trello:CARD", parse=_parse, page=_page),
    takes_files=True,
    bot="draftsman_bots.trello.service:create",
    facts=ChannelFacts(
        accounts="account", has_bot=True, is_chat=True, takes_answers=True, is_evidence=True
    ),
    migrations="draftsman_bots.trello.migrations",
    shared_digests="draftsman_bots.trello.records.store:digest_cards",
    requires=("trello", "starlette", "uvicorn", "prometheus_client"),
)
