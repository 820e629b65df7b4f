"""The process part that sends mail, and reads the mailbox."""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING, Final

from draftsman.errors import ConfigError, DatabaseUnreachable, Failure
from draftsman.processes.components import ComponentGroup, Routine
from draftsman.processes.lifecycle import OutageGuard
from draftsman_bots.mail.channel import MailChannel
from draftsman_bots.mail.mail_handler import MailHandler
from draftsman_bots.mail.mailbox import Mailbox
from draftsman_bots.mail.settings import MailSettings
from draftsman_bots.process.credentials import read_credential

if TYPE_CHECKING:
    from draftsman.runtime import Runtime

MIN_KEY: Final = 32
"""Characters of the key of reply addresses."""
_log = logging.getLogger(__name__)


class MailService(ComponentGroup):
    """The sender of mail, and the reader of the mailbox."""

    def __init__(self, rt: Runtime, settings: MailSettings) -> None:
        """Read the secrets; raises ConfigError."""
        key = read_credential("mail", "reply_key", settings.reply_key).encode()
        if len(key) < MIN_KEY:
            raise ConfigError(f"[mail] reply_key has less than {MIN_KEY} characters")
        self.channel = MailChannel(rt, settings, key)
        self.mailbox = None if settings.imap is None else Mailbox(settings.imap)
        self.handler = MailHandler(rt, settings, key, self.channel)
        guard = OutageGuard("mail", "mailbox or database")
        reader = Routine(partial(guard.repeat, self.read, settings.poll))
        super().__init__([reader, rt.delivery_process([self.channel])])

    async def read(self) -> None:
        """Process the unseen mails; raises Failure, or DatabaseUnreachable."""
        if self.mailbox is None:
            return
        validity, mails = await asyncio.to_thread(self.mailbox.unseen)
        done: list[int] = []
        try:
            for uid, raw in mails.items():
                if await self._is_processed(uid, raw):
                    done.append(uid)
        finally:
            if done:
                await asyncio.to_thread(self.mailbox.mark_seen, validity, done)

    async def _is_processed(self, uid: int, raw: bytes) -> bool:
        """Process a mail; return False if it needs to be read again, as its reply was not sent."""
        try:
            _log.info("mail %s: %s", uid, await self.handler.on_mail(raw))
        except DatabaseUnreachable:
            raise
        except Failure as error:
            _log.warning("mail %s: its reply was not sent: %s", uid, error)
            return False
        except Exception as error:  # it must not stop the others
            _log.error("mail %s failed: %s", uid, type(error).__name__, exc_info=error)
        return True


def create(rt: Runtime) -> MailService:
    """Return the bot; raises ConfigError."""
    return MailService(rt, MailSettings.required(rt.settings))
