"""Checks of sending and receiving for `draftsman doctor`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import aiosmtplib

from draftsman.errors import ConfigError, Failure
from draftsman_bots.mail.channel import client_arguments
from draftsman_bots.mail.mailbox import Mailbox
from draftsman_bots.mail.settings import MailSettings
from draftsman_bots.process.checks import Check


async def checks(settings: object, _rt: object = None) -> AsyncIterator[Check]:
    """Yield whether the servers accept the account, and whether replies have an effect."""
    mail = MailSettings.of(settings)
    if mail is None:
        return
    try:
        async with aiosmtplib.SMTP(**client_arguments(mail.smtp)) as client:
            await client.mail(mail.address)
        yield Check("ok", f"{mail.smtp.host} sends mail of {mail.address}")
    except (ConfigError, aiosmtplib.SMTPException, OSError) as error:
        yield Check(
            "fail",
            f"mail cannot be sent: {error}",
            "check [mail.smtp]; see: draftsman help --page mail",
        )
    if mail.imap is None or not mail.authserv_id:
        yield Check("warn", "replies to mail have no effect", "add imap and authserv_id to [mail]")
        return
    try:
        await asyncio.to_thread(Mailbox(mail.imap).unseen)
        yield Check("ok", f"{mail.imap.host} has the mail for {mail.address}")
    except (ConfigError, Failure) as error:
        yield Check(
            "fail",
            f"mail cannot be read: {error}",
            "check [mail.imap] (draftsman help --page mail)",
        )
