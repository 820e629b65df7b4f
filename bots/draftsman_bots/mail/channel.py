"""Delivery by SMTP: a mail for each message, and for the end of a question.

A mail cannot be edited: statuses, which change, are not mailed. It cannot be searched for either;
one that may have arrived is sent again with the same Message-ID.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from email.message import EmailMessage
from email.policy import SMTP
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import aiosmtplib

from draftsman.deliveries import delivery
from draftsman.deliveries.channel import Channel
from draftsman.deliveries.delivery import DeliveryKind, File, Message, RateLimit, Receipt
from draftsman.deliveries.documents.builder import build_document
from draftsman.deliveries.documents.document import Step
from draftsman.deliveries.documents.html import MAIL_STYLES, HtmlMedium, print_html
from draftsman.deliveries.documents.plain import command_of, render_plain, to_answer
from draftsman.errors import Failure
from draftsman.formats.invisible import escape_invisible
from draftsman.jobs.retries import ErrorClass, classify
from draftsman.people.actor import Actor
from draftsman.text import first_line
from draftsman_bots.mail.reply_address import ReplyTopic, reply_address
from draftsman_bots.process.credentials import read_optional

if TYPE_CHECKING:
    from draftsman.runtime import Runtime
    from draftsman_bots.mail.incoming import IncomingMail
    from draftsman_bots.mail.settings import MailServer, MailSettings

NAME: Final = "mail"
PAUSE: Final = 60.0
"""Seconds before the next attempt while the server refuses the account."""
LIMIT: Final = RateLimit(NAME, every=1.0, burst=30)


class MailChannel(Channel):
    """Mails from the address of draftsman."""

    name = NAME

    def __init__(self, rt: Runtime, settings: MailSettings, key: bytes) -> None:
        """Read the password; `key` signs reply addresses. Raises ConfigError."""
        self._rt = rt
        self._settings = settings
        self._key = key
        self._server = client_arguments(settings.smtp)

    def limits(self, message: Message) -> Sequence[RateLimit]:
        """Return the limit of the account."""
        return (LIMIT,)

    def bucket(self, message: Message, failure: Failure) -> str:
        """Return the bucket of the account."""
        return NAME

    async def send(self, message: Message) -> delivery.SendResult:
        """Send a mail, unless it is a status."""
        return await self._send(message, DeliveryKind.STATUS)

    async def edit(self, message: Message) -> delivery.SendResult:
        """Mail how a question ended; other edits are not mailed."""
        result = await self._send(message, DeliveryKind.STATUS, *delivery.QUESTION_KINDS)
        return Receipt(message.edits or "") if isinstance(result, Receipt) else result

    async def upload(self, message: Message, file: File) -> delivery.SendResult:
        """Send a mail with the file."""
        return await self._send(message, file=file)

    async def reply(self, to: IncomingMail, text: str) -> None:
        """Reply to a mail; raises Failure if it may be tried again."""
        now = await self._rt.checkpoints.now()
        mail = self._mail(to.sender, f"re.{to.key[5:]}", f"Re: {to.subject}", text, now)
        if to.id:
            mail["In-Reply-To"] = mail["References"] = to.id
        result = await self._post(mail)
        if isinstance(result, delivery.Unconfirmed):
            raise Failure(result.reason, origin=NAME)
        if isinstance(result, Failure) and classify(result) is not ErrorClass.PERMANENT:
            raise result

    async def _send(
        self, message: Message, *unsent: DeliveryKind, file: File | None = None
    ) -> delivery.SendResult:
        if message.kind in unsent:
            return Receipt(self._id(str(message.subject.id)))
        reader = await self._rt.people.actor(Actor(NAME, message.target, message.target))
        return await self._post(self._compose(message, reader.person, file))

    async def _post(self, mail: EmailMessage) -> delivery.SendResult:
        """Send a mail; one is Unconfirmed if the connection was lost after it was opened."""
        try:
            await aiosmtplib.send(mail, sender=self._settings.address, **self._server)
        except aiosmtplib.SMTPRecipientsRefused as refused:
            return _failure(refused.recipients[0], delivery.TARGET_GONE)
        except aiosmtplib.SMTPResponseException as error:
            return _failure(error)
        except (aiosmtplib.SMTPConnectError, aiosmtplib.SMTPNotSupported) as error:
            return Failure(str(error), origin=NAME, declared="TRANSIENT_INFRA")
        except (aiosmtplib.SMTPException, OSError) as error:
            return delivery.Unconfirmed(f"{type(error).__name__}: {error}")
        return Receipt(mail["Message-ID"])

    def _compose(self, message: Message, person: str | None, file: File | None) -> EmailMessage:
        """Return the mail of a message, to which the `person` of its target can reply."""
        job = message.subject
        is_digest = message.kind is DeliveryKind.DIGEST
        step = partial(step_in_mail, can_reply=person is not None)
        text = render_plain(message, step)
        title = first_line(text) if is_digest else f"{job.name}: {job.title}"
        mail = self._mail(message.target, message.marker, title, text, message.created_at)
        if person is not None:
            ordinal = message.question.ordinal if message.question else 0
            expires = message.created_at + timedelta(days=self._settings.reply_days)
            topic = ReplyTopic(0 if is_digest else job.number, ordinal, int(expires.timestamp()))
            reply = reply_address(self._settings.address, self._key, person, topic)
            if is_digest:
                mail["List-Unsubscribe"] = f"<mailto:{reply}>"
            else:
                mail["Reply-To"] = reply
        if not is_digest:
            mail["References"] = self._id(str(job.id))
        medium = HtmlMedium("attached to this mail", step, styles=MAIL_STYLES)
        mail.add_alternative(print_html(build_document(message), medium), subtype="html")
        if file is not None:
            name = first_line(escape_invisible(file.name))
            mail.add_attachment(file.data, "application", "octet-stream", filename=name)
        return mail

    def _mail(self, to: str, name: str, subject: str, text: str, at: datetime) -> EmailMessage:
        """Return a mail with a text, to which no program answers."""
        mail = EmailMessage(SMTP)
        mail["From"] = f"draftsman <{self._settings.address}>"
        mail["To"] = to
        mail["Subject"] = first_line(escape_invisible(subject))
        mail["Date"] = at
        mail["Message-ID"] = self._id(name)
        mail["Auto-Submitted"] = "auto-generated"
        mail["X-Auto-Response-Suppress"] = "All"
        mail.set_content(escape_invisible(text))
        return mail

    def _id(self, name: str) -> str:
        """Return a Message-ID."""
        return f"<{name}@{self._settings.address.partition('@')[2]}>"


def client_arguments(smtp: MailServer) -> dict[str, Any]:
    """Return the arguments of an SMTP client, with the password; raises ConfigError."""
    return {
        "hostname": smtp.host,
        "port": smtp.port,
        "use_tls": smtp.has_tls,
        "start_tls": smtp.has_starttls,
        "username": smtp.user,
        "password": read_optional("mail.smtp", "password", smtp.password),
    }


def step_in_mail(step: Step, *, can_reply: bool) -> str:
    """Return how to take a step by a reply, or else the command."""
    if not step.is_answer:
        return command_of(step)
    if can_reply:
        return to_answer(step, "reply", answer="with ")
    return f"to answer: {command_of(step)}"


def _failure(error: aiosmtplib.SMTPResponseException, code: str | None = None) -> Failure:
    """Return a refusal: of a recipient or a content for ever, of the account for a while."""
    text = f"{error.code} {error.message}"
    if error.code >= 500 and (code or isinstance(error, aiosmtplib.SMTPDataError)):
        return Failure(text, origin=NAME, code=code, declared="PERMANENT")
    pause = None if code else PAUSE
    return Failure(text, origin=NAME, declared="TRANSIENT_INFRA", retry_after=pause)
