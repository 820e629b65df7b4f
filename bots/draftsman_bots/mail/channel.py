"""Delivery by SMTP: a mail for each message, and for the end of a question.

A mail cannot be edited: statuses, which change, are not mailed. It cannot be searched for either;
one that may have arrived is sent again with the same Message-ID.
"""

from __future__ import annotations

from collections.abc import Sequence
from email.message import EmailMessage
from typing import TYPE_CHECKING, Any, Final

import aiosmtplib

from draftsman.deliveries.channel import Channel
from draftsman.deliveries.delivery import (
    QUESTION_KINDS,
    TARGET_GONE,
    DeliveryKind,
    File,
    Message,
    RateLimit,
    Receipt,
    SendResult,
    Unconfirmed,
)
from draftsman.errors import Failure
from draftsman.people.actor import Actor
from draftsman_bots.mail.mailbox import read_password
from draftsman_bots.mail.outgoing import Composer
from draftsman_bots.mail.settings import MailServer

if TYPE_CHECKING:
    from draftsman.runtime import Runtime

NAME: Final = "mail"
PAUSE: Final = 60.0
"""Seconds before the next attempt while the server refuses the account."""
LIMIT: Final = RateLimit(NAME, every=1.0, burst=30)


class MailChannel(Channel):
    """Mails from the address of draftsman."""

    name = NAME

    def __init__(self, rt: Runtime, composer: Composer, server: dict[str, Any]) -> None:
        """Take the arguments of an SMTP client."""
        self._rt = rt
        self._composer = composer
        self._server = server

    def limits(self, message: Message) -> Sequence[RateLimit]:
        """Return the limit of the account."""
        return (LIMIT,)

    def bucket(self, message: Message, failure: Failure) -> str:
        """Return the bucket of the account."""
        return NAME

    async def send(self, message: Message) -> SendResult:
        """Send a mail, unless it is a status."""
        return await self._send(message, DeliveryKind.STATUS)

    async def edit(self, message: Message) -> SendResult:
        """Mail how a question ended; other edits are not mailed."""
        result = await self._send(message, DeliveryKind.STATUS, *QUESTION_KINDS)
        return Receipt(message.edits or "") if isinstance(result, Receipt) else result

    async def upload(self, message: Message, file: File) -> SendResult:
        """Send a mail with the file."""
        return await self._send(message, file=file)

    async def _send(
        self, message: Message, *unsent: DeliveryKind, file: File | None = None
    ) -> SendResult:
        if message.kind in unsent:
            return Receipt(self._composer.id(str(message.subject.id)))
        reader = await self._rt.people.actor(Actor(NAME, message.target, message.target))
        return await self.post(self._composer.compose(message, reader.person, file))

    async def post(self, mail: EmailMessage) -> SendResult:
        """Send a mail; one is Unconfirmed if the connection was lost after it was opened."""
        try:
            await aiosmtplib.send(mail, sender=self._composer.address, **self._server)
        except aiosmtplib.SMTPRecipientsRefused as refused:
            return _failure(refused.recipients[0], TARGET_GONE)
        except aiosmtplib.SMTPResponseException as error:
            return _failure(error)
        except (aiosmtplib.SMTPConnectError, aiosmtplib.SMTPNotSupported) as error:
            return Failure(str(error), origin=NAME, declared="TRANSIENT_INFRA")
        except (aiosmtplib.SMTPException, OSError) as error:
            return Unconfirmed(f"{type(error).__name__}: {error}")
        return Receipt(mail["Message-ID"])


def client_arguments(smtp: MailServer) -> dict[str, Any]:
    """Return the arguments of an SMTP client, with the password; raises ConfigError."""
    return {
        "hostname": smtp.host,
        "port": smtp.port,
        "use_tls": smtp.has_tls,
        "start_tls": smtp.has_starttls,
        "username": smtp.user,
        "password": read_password(smtp, "smtp"),
    }


def _failure(error: aiosmtplib.SMTPResponseException, code: str | None = None) -> Failure:
    """Return a refusal: of a recipient or a content for ever, of the account for a while."""
    text = f"{error.code} {error.message}"
    if error.code >= 500 and (code or isinstance(error, aiosmtplib.SMTPDataError)):
        return Failure(text, origin=NAME, code=code, declared="PERMANENT")
    pause = None if code else PAUSE
    return Failure(text, origin=NAME, declared="TRANSIENT_INFRA", retry_after=pause)
