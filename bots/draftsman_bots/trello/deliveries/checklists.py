"""Checklists of questions: an item for each choice, so that checking an item is an answer.

A checklist is found by the tag at the end of its name until its id is stored: a process that was
killed in between makes no second checklist. Its items have the numbers of their choices.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from draftsman.deliveries.question_text import resolution_spans
from draftsman.questions.question import Question, QuestionKind, QuestionStatus
from draftsman_bots.json_fields import objects, string
from draftsman_bots.text import truncate
from draftsman_bots.trello.deliveries.markdown import escape_truncated, strip_mentions
from draftsman_bots.trello.deliveries.member_names import MemberNames, member_name
from draftsman_bots.trello.records.board import BoardConfig, ChecklistUse
from draftsman_bots.trello.records.cards import CardChecklist

if TYPE_CHECKING:
    from draftsman.deliveries.delivery import Message
    from draftsman_bots.trello.records.service import TrelloCards
    from draftsman_bots.trello.transport.client import Trello

MAX_ITEMS: Final = 20
"""Choices of a question that has a checklist; each is a request of its own."""
DECISIONS: Final = ("approve", "deny")
"""Items of an approval."""
MAX_NAME: Final = 300
_TAG: Final = 8
"""Characters of the job's id in the tag."""
_OWN: Final = re.compile(r"D-\d+/\d+: .* · [0-9a-f]{8}", re.DOTALL)


def uses_checklist(config: BoardConfig, question: Question | None) -> bool:
    """Return whether a question has a checklist on the cards of a board.

    An approval that several people must give has none: an item is checked once.
    """
    if question is None or config.checklists is ChecklistUse.OFF:
        return False
    if question.kind is QuestionKind.APPROVAL:
        return config.checklists is ChecklistUse.ALL and question.quorum == 1
    return 0 < len(question.choices) <= MAX_ITEMS


async def add_checklist(trello: Trello, cards: TrelloCards, message: Message) -> None:
    """Add the checklist of an open question to its card, or complete it; raises Failure."""
    question = message.question
    card = message.target
    if question is None or question.status is not QuestionStatus.OPEN:
        return
    if await cards.checklist(card, question.job, question.ordinal) is not None:
        return
    checklists = await _find(trello, message)
    if not checklists:
        changes = "; to request changes, comment: request changes TEXT"
        how = f"check one item to answer{changes if question.takes_changes else ''}"
        name = _name(message, how)
        checklists = [await trello.post(f"/cards/{card}/checklists", name=name)]
    first, *duplicates = checklists
    checklist = string(first, "id")
    for duplicate in duplicates:
        await trello.delete(f"/checklists/{string(duplicate, 'id')}")
    item_ids = {string(item, "name"): string(item, "id") for item in objects(first, "checkItems")}
    for name in item_names(question):
        if name not in item_ids:
            item = await trello.post(f"/checklists/{checklist}/checkItems", name=name)
            item_ids[name] = string(item, "id")
    numbers = {item_ids[name]: number for number, name in enumerate(item_names(question), 1)}
    await cards.save_checklist(
        CardChecklist(
            card=card,
            job=question.job,
            question=question.ordinal,
            checklist=checklist,
            items=numbers,
        )
    )


async def close_checklist(
    trello: Trello, cards: TrelloCards, message: Message, names: MemberNames
) -> None:
    """Remove the checklist of a closed question, or name its answer if people used it.

    Raises Failure.
    """
    question = message.question
    card = message.target
    if question is None:
        return
    stored = await cards.checklist(card, question.job, question.ordinal)
    if stored is not None and stored.closed_at is not None:
        return
    for checklist in await _find(trello, message):
        path = f"/checklists/{string(checklist, 'id')}"
        if _is_used(checklist, question):
            outcome = "".join(
                span if isinstance(span, str) else member_name(span, names)
                for span in resolution_spans(question)
            )
            await trello.put(path, name=_name(message, outcome))
        else:
            await trello.delete(path)
    await cards.close_checklist(card, question.job, question.ordinal)


def is_own_name(name: str) -> bool:
    """Return whether a checklist has the name of the checklist of a question."""
    return _OWN.fullmatch(name) is not None


def item_names(question: Question) -> list[str]:
    """Return the names of the items of a question, each with the number of its choice."""
    is_approval = question.kind is QuestionKind.APPROVAL
    labels = DECISIONS if is_approval else question.labels()
    return [
        escape_truncated(f"{number} · {' '.join(label.split())}", MAX_NAME)
        for number, label in enumerate(labels, 1)
    ]


async def _find(trello: Trello, message: Message) -> list[dict[str, Any]]:
    """Return the checklists of a question on its card, oldest first."""
    page = await trello.get(f"/cards/{message.target}/checklists")
    entries = [entry for entry in page if isinstance(entry, dict)] if page else []
    of_question = [entry for entry in entries if _is_of(message, string(entry, "name"))]
    return sorted(of_question, key=lambda entry: string(entry, "id"))


def _name(message: Message, text: str) -> str:
    question = message.question
    safe_text = strip_mentions(truncate(" ".join(text.split()), MAX_NAME))  # a name is no Markdown
    return f"{question.name if question else ''}: {safe_text} · {_tag(message)}"


def _is_of(message: Message, name: str) -> bool:
    question = message.question
    start = f"{question.name if question else ''}: "
    return name.startswith(start) and name.endswith(f" · {_tag(message)}")


def _tag(message: Message) -> str:
    return str(message.subject.id)[:_TAG]


def _is_used(checklist: dict[str, Any], question: Question) -> bool:
    """Return whether people checked an item, or added items of their own."""
    original_names = item_names(question)
    return any(
        string(item, "state") == "complete" or string(item, "name") not in original_names
        for item in objects(checklist, "checkItems")
    )
