"""The declaration of e-mail as a channel."""

from __future__ import annotations

import re
from typing import Final

from draftsman.channels.plugin import ChannelFacts, ChannelPlugin, TargetSyntax

ADDRESS: Final = re.compile(r"[a-z0-9][a-z0-9._+-]{0,63}@[a-z0-9-]{1,63}(\.[a-z0-9-]{1,63})+")
ADDRESS_FORM: Final = "must be an e-mail address in lower case, such as anna@example.org"


def _parse(address: str) -> tuple[str, None]:
    if not ADDRESS.fullmatch(address):
        raise ValueError(ADDRESS_FORM)
    return address, None


MAIL = ChannelPlugin(
    name="mail",
    label="E-mail",
    docs="draftsman help --page mail",
    settings="draftsman_bots.mail.settings:MailSettings",
    account="draftsman_bots.mail.settings:MailAccount",
    target=TargetSyntax(form="mail:ADDRESS", parse=_parse),
    bot="draftsman_bots.mail.service:create",
    doctor="draftsman_bots.mail.doctor:checks",
    live_checks="draftsman_bots.mail.live_checks:LIVE_CHECKS",
    facts=ChannelFacts(
        accounts="account",
        has_bot=True,
        takes_answers=True,
        is_evidence=True,
        person_target=".+",
    ),
    requires=("aiosmtplib", "bs4", "imapclient", "mailparser_reply", "publicsuffixlist"),
)
