"""Mails of people: replies to messages, and requests for the jobs of templates."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Final

from draftsman.actions.action import Call
from draftsman.actions.people import digest
from draftsman.actions.requests import submit
from draftsman.attention.digests import OFF
from draftsman.errors import CORRECTABLE, IdempotencyConflict
from draftsman.ids import job_name
from draftsman.jobs.requests.entered_form import EnteredForm
from draftsman.people.actor import Actor
from draftsman_bots.conversation.commands import Surface
from draftsman_bots.conversation.parser import REPLY, parse
from draftsman_bots.conversation.replies import KnownAuthor, Wording, respond_to_text
from draftsman_bots.mail.authentication import sender_problem
from draftsman_bots.mail.channel import NAME, MailChannel
from draftsman_bots.mail.incoming import IncomingMail, read_headers, read_text
from draftsman_bots.mail.reply_address import ReplyTopic, topic_of
from draftsman_bots.process.background import BackgroundTasks
from draftsman_bots.web.settings import WebSettings

if TYPE_CHECKING:
    from draftsman.runtime import Runtime
    from draftsman_bots.mail.settings import MailSettings

WORDING: Final = Wording(Surface.REPLY, quote="`")


class MailHandler:
    """Processes mails; the same mail twice has the effect of one."""

    def __init__(
        self, rt: Runtime, settings: MailSettings, key: bytes, channel: MailChannel
    ) -> None:
        self._rt = rt
        self._settings = settings
        self._key = key
        self._channel = channel
        self._refusals = BackgroundTasks()

    async def on_mail(self, raw: bytes) -> str:
        """Process a mail; return its outcome, for the log. Raises DraftsmanError.

        Only known people get replies, and programs never.
        """
        mail = read_headers(raw)
        if mail.automatic or mail.sender == self._settings.address:
            return f"ignored: {mail.automatic or 'own mail'}"
        actor = await self._rt.people.actor(Actor(NAME, mail.sender, mail.sender))
        if not mail.sender or actor.person is None:
            return "ignored: of no known person"
        topic, template = self._purpose(mail, actor.person)
        if topic is None and template is None:
            return "ignored: for no message and no template"
        now = await self._rt.checkpoints.now()
        if problem := self._problem(mail, topic, now):
            if self._refusals.first((actor.person, topic, f"{now:%Y-%m-%d %H}")):
                await self._refuse(mail, problem, topic)
            return f"refused: {problem}"
        text = read_text(raw)
        if topic is None:
            return await self._request(mail, actor, str(template), text)
        if topic.job:
            return await self._answer(mail, actor, topic, text)
        await digest(Call(self._rt, actor), None, OFF)
        await self._channel.reply(mail, "You get no more digests.")
        return "unsubscribed"

    def _purpose(self, mail: IncomingMail, person: str) -> tuple[ReplyTopic | None, str | None]:
        """Return what a mail replies to, or the template that it is for; never guess."""
        address, key = self._settings.address, self._key
        signed = {topic_of(to, address, key, person) for to in mail.recipients} - {None}
        named = {self._settings.templates.get(to) for to in mail.recipients} - {None}
        if len(signed) + len(named) != 1:
            return None, None
        return (*signed, None)[0], (*named, None)[0]

    def _problem(self, mail: IncomingMail, topic: ReplyTopic | None, now: datetime) -> str:
        """Return why a mail has no effect; "" if its sender is certain and it is in time."""
        server, fields = self._settings.authserv_id, self._settings.authserv_fields
        domain = mail.sender.rpartition("@")[2]
        if problem := sender_problem(mail.results, server, fields, domain):
            return f"the receiving server did not confirm its sender: {problem}"
        is_late = topic is not None and topic.expires < now.timestamp()
        return "the message to which it replies is too old" if is_late else ""

    async def _answer(self, mail: IncomingMail, actor: Actor, topic: ReplyTopic, text: str) -> str:
        """Answer the question, or control the job, of the message that a mail replies to."""
        result = await respond_to_text(
            KnownAuthor(self._rt, actor, WORDING),
            parse(text, REPLY),
            mail.key,
            [topic.job],
            lambda question: question.ordinal == topic.question,
        )
        if result is None:
            problem = "nothing waits for it" if text else "it has no text above the quoted message"
            await self._refuse(mail, problem, topic)
            return f"refused: {problem}"
        if result.spans:
            await self._channel.reply(mail, "".join(map(str, result.spans)))
        return str(result.kind)

    async def _request(self, mail: IncomingMail, actor: Actor, template: str, text: str) -> str:
        """Submit the job of a template, with the parameters that it has."""
        values = {"subject": mail.subject, "text": text, "sender": mail.sender}
        try:
            inputs = await self._rt.templates.inputs(await self._rt.templates.get(template))
            params = {name: value for name, value in values.items() if name in inputs.properties}
            form = EnteredForm(params, event=mail.key, notify=(f"{NAME}:{mail.sender}",))
            request = await self._rt.templates.request(template, form)
            submitted = (await submit(Call(self._rt, actor), request)).value
        except IdempotencyConflict:
            return "submitted before"
        except CORRECTABLE as error:
            await self._channel.reply(mail, f"No job was started: {error}")
            return f"refused: {error}"
        await self._channel.reply(mail, f"{submitted.name} was started.")
        return f"submitted {submitted.name}"

    async def _refuse(self, mail: IncomingMail, problem: str, topic: ReplyTopic | None) -> None:
        """Reply that a mail has no effect, with another way."""
        job, question, _ = topic or (0, 0, 0)
        web = WebSettings.in_use(self._rt.settings)
        way = f"In a terminal: draftsman show {job_name(job)}" if job else ""
        if web.is_secure:  # else only the machine of the inbox reaches it
            way = f"In the web inbox: {web.page(job, question)}"
        await self._channel.reply(mail, f"Your mail has no effect: {problem}.\n{way}")
