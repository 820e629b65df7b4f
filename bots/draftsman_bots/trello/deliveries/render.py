"""Renderer of messages as Markdown comments. Pure.

Any text gives a comment that Trello accepts after the marker is added. Only the people whom a
question is addressed to are mentioned.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from draftsman.deliveries.delivery import DeliveryKind, Message
from draftsman.deliveries.documents.builder import build_document, full_at
from draftsman.deliveries.documents.document import LENGTH, Action, Step
from draftsman.deliveries.documents.markdown import print_markdown
from draftsman.deliveries.documents.plain import to_answer
from draftsman.deliveries.message_text import job_outcome_text, status_text
from draftsman.deliveries.result_text import change_summary, counts_summary, pr_url
from draftsman.formats.truncation import utf16_length
from draftsman.people.policy import Person
from draftsman.people.spans import ActorRef
from draftsman.text_template import fill
from draftsman_bots import json_fields
from draftsman_bots.text import truncate
from draftsman_bots.trello.deliveries import markdown
from draftsman_bots.trello.deliveries.markdown import escape_truncated, link, one_line
from draftsman_bots.trello.deliveries.member_names import MemberNames, member_name

ROOM: Final = 500
"""Characters of a comment for its marker and a mention."""
_NO_NAMES: Final[MemberNames] = {}


def render(
    message: Message,
    names: MemberNames = _NO_NAMES,
    template: str | None = None,
    *,
    checklist: bool = False,
) -> str:
    """Return the body of a comment; `template` is the board's template for results.

    `checklist` tells whether the choices of the question are also a checklist of the card.
    """
    if message.kind is DeliveryKind.RESULT and template is not None:
        return fill(template, template_fields(message))
    markup = CardMarkup(names, checklist)
    most = markdown.MAX_COMMENT - ROOM
    text = print_markdown(build_document(message), markup, full_at(message), most, utf16_length)
    to = names.get(str((message.payload or {}).get("to", "")))
    return f"@{to} {text}" if to and message.kind is DeliveryKind.NOTICE else text


@dataclass(frozen=True, slots=True)
class CardMarkup:
    """Trello's Markdown, on a card whose board has these members."""

    names: MemberNames
    checklist: bool = False

    in_file = "attached to the card"

    def block(self, text: str, most: int) -> str:
        """Return an escaped text."""
        return escape_truncated(truncate(text.strip(), most), 2 * most)

    def line(self, text: str, most: int) -> str:
        """Return an escaped line."""
        return one_line(truncate(text, most), 2 * most)

    def code(self, text: str, most: int, language: str) -> str:
        """Return a block of code; Trello colors none."""
        return markdown.code(truncate(text, most), 2 * most)

    def link(self, url: str) -> str:
        """Return a link, except to a card: the job is on it."""
        return "" if "://trello.com/c/" in url else link(url)

    def actor(self, actor: ActorRef) -> str:
        """Return the username of a member, or the name."""
        return member_name(actor, self.names)

    def mention(self, person: Person) -> str:
        """Return a mention of a member, or the name."""
        username = self.names.get(person.ids.get("trello", ""))
        return f"@{username}" if username else escape_truncated(person.name, 100)

    def step(self, step: Step) -> str:
        """Return how to answer in a comment, or the command."""
        match step.action:
            case Action.APPROVE:
                return to_answer(step, "comment")
            case Action.ANSWER:
                checklist = ", or check an item of the checklist" if self.checklist else ""
                return f"to answer, comment {_answer(step)}{checklist}"
            case _:
                return f"`{step.command}`"


def _answer(step: Step) -> str:
    if not step.choices:
        return f"`/answer` and {step.wanted or 'your answer'}"
    free = f", or `/answer` and {step.wanted or 'free text'}" if step.freeform else ""
    return f"the number{free}"


def template_fields(message: Message) -> dict[str, str]:
    """Return the fields of a template, escaped; missing fields are empty."""
    subject = message.subject
    result = message.subject.result or {}
    texts = {
        "title": subject.title,
        "status": status_text(subject),
        "ending": job_outcome_text(subject),
        "summary": truncate(json_fields.string(result, "summary"), LENGTH),
        "repo": subject.repo,
        "agent": subject.request and subject.request.agent,
        "invoker": subject.invoker,
        "error": truncate(subject.error or "", LENGTH // 4),
    }
    url = pr_url(result)
    changes = "\n".join(filter(None, [change_summary(result), counts_summary(result)]))
    return {name: escape_truncated(text or "") for name, text in texts.items()} | {
        "job": subject.name,
        "pr_url": link(url) if url else "",
        "result": escape_truncated(truncate(changes, LENGTH // 4)),
    }
