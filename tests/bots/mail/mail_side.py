"""Mail of people, a fake of their mail server, and the bot between."""

from __future__ import annotations

import asyncio
import email
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from email.message import EmailMessage
from email.policy import default
from typing import Any, Final

from aiosmtpd.smtp import SMTP, Envelope, Session

from draftsman_bots.mail.service import MailService
from draftsman_testing.channel.place import Fault, Post
from tests.bots.mail.imap_server import ImapServer

ADDRESS: Final = "draftsman@example.org"
SERVER: Final = "mx.example.org"
KEY: Final = b"k" * 40
PASSWORD: Final = "p4ssw0rd-of-the-mailbox"
CONFIRMED: Final = f"Authentication-Results: {SERVER}; dkim=pass header.d=example.org"


class SmtpSink:
    """A handler of aiosmtpd that keeps mails, and has the faults of a server."""

    def __init__(self) -> None:
        self.mails: list[EmailMessage] = []
        self.faults: list[Fault] = []

    async def handle_RCPT(  # noqa: N802
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        """Accept a recipient, unless it is gone."""
        if Fault.TARGET_GONE in self.faults:
            return "550 5.1.1 no such user"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802
        """Keep a mail."""
        content = envelope.content
        assert isinstance(content, bytes)
        fault = self.faults.pop() if self.faults else None
        if fault is Fault.REFUSED:
            return "554 5.7.1 refused"
        if fault is Fault.RATE_LIMIT:
            return "451 4.7.1 later"
        mail = email.message_from_bytes(content, policy=default)
        assert isinstance(mail, EmailMessage)
        assert envelope.rcpt_tos == [mail["To"]]
        assert envelope.mail_from == ADDRESS
        self.mails.append(mail)
        if fault is Fault.LOST_REPLY:
            assert isinstance(server.transport, asyncio.WriteTransport)
            server.transport.abort()
        return "250 OK"


class MailSide:
    """The mails that draftsman sent, and the mailbox that it reads."""

    def __init__(self, sink: SmtpSink, smtp: asyncio.Server, imap: ImapServer) -> None:
        self.sink = sink
        self.smtp = smtp
        self.imap = imap

    @property
    def sent(self) -> list[EmailMessage]:
        """The mails of draftsman."""
        return self.sink.mails

    def settings(self, **fields: Any) -> dict[str, Any]:
        """Return the table `[mail]` for these servers."""
        secret = {"env": "MAIL_PASSWORD"}
        account = {"host": "127.0.0.1", "user": ADDRESS, "password": secret}
        return {
            "address": ADDRESS,
            "smtp": {"host": "127.0.0.1", "port": self.smtp.sockets[0].getsockname()[1]},
            "imap": account | {"port": self.imap.port},
            "poll": 1,
            "reply_key": {"env": "MAIL_KEY"},
            "authserv_id": SERVER,
            "templates": {"draftsman+bug@example.org": "bug"},
        } | fields

    async def answer(self, bot: MailService, text: str, *headers: str, **fields: str) -> None:
        """Reply to the last mail, and let the bot read it."""
        self.imap.deliver(reply(self.sent[-1], text, *headers, **fields))
        await bot.read()
        assert self.imap.violations == []


def reply(
    mail: EmailMessage,
    text: str,
    *headers: str,
    sender: str = "",
    to: str = "",
    id: str = "",
    confirmed: str = CONFIRMED,
    kind: str = "text/plain; charset=utf-8",
) -> bytes:
    """Return a reply to a mail, as a server stores it."""
    lines = [
        confirmed,
        *headers,
        f"From: {sender or mail['To']}",
        f"To: {to or mail['Reply-To'] or ADDRESS}",
        f"Subject: Re: {mail['Subject']}",
        f"Message-ID: {id or '<' + str(abs(hash((text, headers)))) + '@mail.example.org>'}",
        f"In-Reply-To: {mail['Message-ID']}",
        f"Content-Type: {kind}",
    ]
    head = "\r\n".join(line for line in lines if line)
    return f"{head}\r\n\r\n{text}".encode("utf-8", "surrogateescape")


def text_of(mail: EmailMessage) -> str:
    """Return the text part of a mail."""
    part = mail.get_body(("plain",))
    assert part is not None
    return str(part.get_content())


def html_of(mail: EmailMessage) -> str:
    """Return the HTML part of a mail."""
    part = mail.get_body(("html",))
    assert part is not None
    return str(part.get_content())


def posts_of(mails: Sequence[EmailMessage]) -> list[Post]:
    """Return the marker and the text of each mail."""
    return [Post(mail["Message-ID"].strip("<>").partition("@")[0], text_of(mail)) for mail in mails]


@asynccontextmanager
async def open_side() -> AsyncIterator[MailSide]:
    """Run both servers."""
    sink = SmtpSink()
    loop = asyncio.get_running_loop()
    smtp = await loop.create_server(lambda: SMTP(sink, hostname=SERVER), "127.0.0.1", 0)
    async with smtp:
        with ImapServer(ADDRESS, PASSWORD) as imap:
            yield MailSide(sink, smtp, imap)
