"""Mails about jobs, with text and HTML of the same document. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from email.message import EmailMessage
from email.policy import SMTP
from functools import partial
from typing import TYPE_CHECKING

from draftsman.deliveries.delivery import DeliveryKind
from draftsman.deliveries.documents.builder import build_document
from draftsman.deliveries.documents.document import Action, Step
from draftsman.deliveries.documents.html import MAIL_STYLES, HtmlMedium, print_html
from draftsman.deliveries.documents.plain import command_of, render_plain
from draftsman.formats.invisible import replace_invisible
from draftsman.text import first_line
from draftsman_bots.mail.reply_address import ReplyTopic, reply_address

if TYPE_CHECKING:
    from draftsman.deliveries.delivery import File, Message
    from draftsman_bots.mail.incoming import IncomingMail


@dataclass(frozen=True, slots=True)
class Composer:
    """Writes mails from an address; `key` signs reply addresses, which count for `days`."""

    address: str
    key: bytes
    days: int

    def compose(self, message: Message, person: str | None, file: File | None) -> EmailMessage:
        """Return the mail of a message; the `person` of its target can reply to it."""
        job = message.subject
        is_digest = message.kind is DeliveryKind.DIGEST
        step = partial(step_in_mail, can_reply=person is not None)
        text = render_plain(message, step)
        title = first_line(text) if is_digest else f"{job.name}: {job.title}"
        mail = self._compose(message.target, message.marker, title, text, message.created_at)
        if person is not None:
            ordinal = message.question.ordinal if message.question else 0
            expires = int((message.created_at + timedelta(days=self.days)).timestamp())
            topic = ReplyTopic(0 if is_digest else job.number, ordinal, expires)
            reply = reply_address(self.address, self.key, person, topic)
            if is_digest:
                mail["List-Unsubscribe"] = f"<mailto:{reply}>"
            else:
                mail["Reply-To"] = reply
        if not is_digest:
            mail["References"] = self.id(str(job.id))
        medium = HtmlMedium("attached to this mail", step, styles=MAIL_STYLES, is_whole=True)
        mail.add_alternative(print_html(build_document(message), medium), subtype="html")
        if file is not None:
            name = first_line(replace_invisible(file.name))
            mail.add_attachment(file.data, "application", "octet-stream", filename=name)
        return mail

    def reply(self, to: IncomingMail, text: str, now: datetime) -> EmailMessage:
        """Return the reply to a mail."""
        mail = self._compose(to.sender, f"re.{to.key[5:]}", f"Re: {to.subject}", text, now)
        if to.id:
            mail["In-Reply-To"] = mail["References"] = to.id
        return mail

    def id(self, name: str) -> str:
        """Return a Message-ID."""
        return f"<{name}@{self.address.partition('@')[2]}>"

    def _compose(self, to: str, name: str, subject: str, text: str, at: datetime) -> EmailMessage:
        """Return a mail with a text, to which no program answers."""
        mail = EmailMessage(SMTP)
        mail["From"] = f"draftsman <{self.address}>"
        mail["To"] = to
        mail["Subject"] = first_line(replace_invisible(subject))
        mail["Date"] = at
        mail["Message-ID"] = self.id(name)
        mail["Auto-Submitted"] = "auto-generated"
        mail["X-Auto-Response-Suppress"] = "All"
        mail.set_content(replace_invisible(text))
        return mail


def step_in_mail(step: Step, *, can_reply: bool) -> str:
    """Return how to take a step by a reply, or else the command."""
    match step.action:
        case Action.APPROVE | Action.ANSWER if not can_reply:
            return f"to answer: {command_of(step)}"
        case Action.APPROVE:
            return "to answer, reply `approve`, or `deny` and a reason"
        case Action.ANSWER if step.choices:
            free = " or your own text" if step.freeform else ""
            return f"to answer, reply with the number of a choice{free}"
        case Action.ANSWER:
            return "to answer, reply with your text"
        case _:
            return command_of(step)
