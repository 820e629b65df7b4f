"""Live checks of the mail servers: a mail of draftsman to itself."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from email.message import EmailMessage
from email.parser import BytesParser
from email.policy import default
from email.utils import localtime
from functools import partial
from typing import Final
from uuid import uuid4

import aiosmtplib

from draftsman.deliveries.channels.live_check import (
    LiveCheck,
    LiveChecks,
    LiveSession,
    NotTried,
    require,
)
from draftsman.errors import Failure, UsageError
from draftsman_bots.mail.authentication import sender_problem
from draftsman_bots.mail.channel import client_arguments
from draftsman_bots.mail.mailbox import Mailbox
from draftsman_bots.mail.settings import MailSettings

ARRIVAL: Final = 60
"""Seconds in which a mail has to arrive."""
RESULTS: Final = "Authentication-Results"


@dataclass(slots=True)
class ScratchMail:
    """The account of draftsman, and a mail in its mailbox."""

    session: LiveSession
    settings: MailSettings
    mailbox: Mailbox
    sent: EmailMessage
    uid: int | None = None
    arrived: EmailMessage | None = None

    @property
    def plan(self) -> str:
        """The question before the first write."""
        return f"Send a mail from {self.settings.address} to itself, and delete it there?"

    @property
    def facts(self) -> Mapping[str, str]:
        """The servers, without the account."""
        imap = self.settings.imap
        return {"SMTP": self.settings.smtp.host, "IMAP": imap.host if imap else "none"}

    async def begin(self) -> None:
        """Send the mail; raises Failure."""
        name = f"mail {self.sent['Message-ID']} to {self.sent['To']}"
        await self.session.removals.created("a mail", self._send(), lambda _: (name, self._delete))

    async def _send(self) -> None:
        arguments = client_arguments(self.settings.smtp)
        try:
            await aiosmtplib.send(self.sent, sender=self.settings.address, **arguments)
        except (aiosmtplib.SMTPException, OSError) as error:
            is_refused = isinstance(error, aiosmtplib.SMTPResponseException)
            text = f"the mail cannot be sent: {error}"
            raise Failure(text, origin="mail", code="refused" if is_refused else None) from None

    async def close(self) -> None:
        """Do nothing: connections end with each look."""

    async def look(self) -> bool:
        """Return whether the mail is in the mailbox."""
        token = str(self.sent["Subject"]).rpartition(" ")[2]  # servers may change other fields
        found = await asyncio.to_thread(self.mailbox.find, "Subject", token)
        for uid, raw in found.items():
            self.uid = uid
            self.arrived = BytesParser(EmailMessage, policy=default).parsebytes(raw)
        return self.arrived is not None

    @property
    def mail(self) -> EmailMessage:
        """The mail as it arrived; raises NotTried if it did not."""
        if self.arrived is None:
            raise NotTried("the mail did not arrive")
        return self.arrived

    async def _delete(self) -> None:
        if self.uid is None and not await self.look():
            raise Failure("it did not arrive; it may arrive later", origin="mail")
        if self.uid is not None:
            await asyncio.to_thread(self.mailbox.delete, self.uid)


async def _arrives(place: ScratchMail) -> str:
    arrived = await place.session.until(place.look, ARRIVAL, every=5)
    require(arrived, f"the mail is not in the mailbox after {ARRIVAL} s")
    return "the mail is in the mailbox"


async def _server_name(place: ScratchMail) -> str:
    own = place.settings.authserv_id
    fields = place.mail.get_all(RESULTS, [])[: place.settings.authserv_fields]
    require(fields, f"the mail has no field {RESULTS}")
    names = [str(field).split(";", 1)[0].split()[0] for field in fields]
    require(own.lower() in map(str.lower, names), f"the topmost field is of {names}")
    return f"the topmost field is of {own}"


async def _sender(place: ScratchMail) -> str:
    fields = place.mail.get_all(RESULTS, [])
    if not fields:
        raise NotTried(f"the mail has no field {RESULTS}")
    name = str(fields[0]).split(";", 1)[0].split()[0]
    domain = place.settings.address.rpartition("@")[2]
    problem = sender_problem([*map(str, fields)], name, place.settings.authserv_fields, domain)
    require(not problem, problem)
    return "DKIM or SPF passed for the domain of the address"


async def _same_field(place: ScratchMail, name: str) -> str:
    seen = place.mail[name]
    require(seen == place.sent[name], f"{name} is {seen}")
    return f"{name} is that of the sent mail"


async def _unseen(place: ScratchMail) -> str:
    if place.uid is None:
        raise NotTried("the mail did not arrive")
    flags = await asyncio.to_thread(place.mailbox.flags, place.uid)
    require(rb"\Seen" not in flags, "the mail is marked as seen, though nothing but this read it")
    return "the mail is unseen after it was read"


async def connect(session: LiveSession) -> ScratchMail:
    """Return the account; raises ConfigError, UsageError."""
    settings = MailSettings.required(session.settings)
    if session.scratch is not None:
        raise UsageError("--in has no effect for mail: the mailbox is that of [mail]")
    if settings.imap is None:
        raise UsageError("without [mail.imap] no mail is read, so there is nothing to check")
    return ScratchMail(session, settings, Mailbox(settings.imap), _mail(settings.address))


def _mail(address: str) -> EmailMessage:
    """Return a mail to the own address, with a token by which it is found."""
    local, _, domain = address.partition("@")
    token = uuid4().hex[:12]
    mail = EmailMessage()
    mail["From"] = f"draftsman <{address}>"
    mail["To"] = f"{local}+live-{token}@{domain}"
    mail["Subject"] = f"draftsman live check {token}"
    mail["Date"] = localtime()
    mail["Message-ID"] = f"<live.{uuid4()}@{domain}>"
    mail["Auto-Submitted"] = "auto-generated"
    mail.set_content("This mail checks the mail servers, and is deleted by draftsman.")
    return mail


LIVE_CHECKS: Final = LiveChecks(
    connect=connect,
    checks=(
        LiveCheck(
            name="plus-address",
            assumption="Mail to `draftsman+ANYTHING@…` arrives in the mailbox, within a minute",
            otherwise="Replies do not arrive, and their senders are not told.",
            run=_arrives,
        ),
        LiveCheck(
            name="name-of-server",
            assumption="The topmost `Authentication-Results` begins with `authserv_id`",
            otherwise="No reply counts; its sender is told so.",
            run=_server_name,
        ),
        LiveCheck(
            name="confirmed-sender",
            assumption="It confirms the domain of the sender, by DKIM or SPF, also for mail of the"
            " same server",
            otherwise="No reply from this domain counts; its sender is told so.",
            run=_sender,
        ),
        LiveCheck(
            name="message-id",
            assumption="The server that sends keeps `Message-ID`",
            otherwise="A mail that is sent again is shown twice.",
            run=partial(_same_field, name="Message-ID"),
        ),
        LiveCheck(
            name="auto-submitted",
            assumption="The servers keep `Auto-Submitted`",
            otherwise="Vacation notices answer mails of draftsman.",
            run=partial(_same_field, name="Auto-Submitted"),
        ),
        LiveCheck(
            name="stays-unseen",
            assumption="Reading a mail does not mark it as seen",
            otherwise="A mail that was read before a crash is not processed.",
            run=_unseen,
        ),
    ),
)
