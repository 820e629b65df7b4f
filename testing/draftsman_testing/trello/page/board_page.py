"""A board of the fake Trello as a page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from markdown_it import MarkdownIt

from draftsman_testing.fake.markup import Markup, element, join
from draftsman_testing.fake.page import Form, Guide, Page, action_form
from draftsman_testing.trello.entities import Attachment, Card, Comment
from draftsman_testing.trello.operations import card_extras
from draftsman_testing.trello.server import FakeTrello

MARKDOWN: Final = MarkdownIt("commonmark", {"html": False, "breaks": True}).enable(
    ["table", "strikethrough"]
)
STATUS: Final = ": "
"""Part of the names of labels that the bot sets: `draftsman: queued`."""
LATE: Final = "draftsman did not take the webhook; it reads the board at its next poll."


class BoardPage(Page):
    """The cards of a board, with what the person who looks at it may do to them."""

    def __init__(self, trello: FakeTrello, board: str, guide: Guide) -> None:
        super().__init__(trello, guide)
        self._trello = trello
        self._world = trello.world
        self._board = board

    @property
    def people(self) -> Mapping[str, str]:
        """Names of the members without the bot, by id."""
        board = self._world.boards[self._board]
        without = {self._trello.bot_member, self._trello.someone}
        people = sorted((self._world.members[id].name, id) for id in board.members - without)
        return {id: name for name, id in people}

    def show(self, person: str) -> Markup:
        """Return the cards of each list."""
        lists = (self._list(id, name, person) for id, name in self._lists())
        return element("div", *lists, class_="columns")

    def _lists(self) -> Iterator[tuple[str, str]]:
        for entry in self._world.lists.values():
            if entry.board == self._board and not entry.closed:
                yield entry.id, entry.name

    def _list(self, id: str, name: str, person: str) -> Markup:
        cards = [item for item in self._world.cards.values() if item.column == id]
        shown = [self._card(card, person) for card in cards if not card.closed]
        return element("section", element("h2", f"{name} ({len(shown)})"), *shown)

    def _card(self, card: Card, person: str) -> Markup:
        return element(
            "article",
            element("span", card.name, class_="who"),
            Markup(MARKDOWN.render(card.desc)),
            self._labels(card),
            self._moves(card),
            *(self._checklist(card, id) for id in self._checklists(card)),
            *(self._attachment(item) for item in card.attachments),
            element("div", *map(self._comment, self._trello.comments(card.id)), class_="thread"),
            self.writing(
                person, "Write a comment", "Comment", id=f"comment:{card.id}", card=card.id
            ),
        )

    def _labels(self, card: Card) -> Markup:
        """Return the labels of a card, and buttons for those that are not of a status."""
        buttons = []
        for label in self._world.labels.values():
            has = label.id in card.labels
            if label.board != self._board:
                continue
            if STATUS in label.name:
                buttons += [element("small", f"{label.name} ")] if has else []
            else:
                buttons.append(
                    element(
                        "button",
                        f"{'Remove' if has else 'Add'} label: {label.name}",
                        name="remove" if has else "add",
                        value=label.id,
                        class_="primary" if has else "",
                    )
                )
        return action_form(*buttons, do="label", card=card.id)

    def _moves(self, card: Card) -> Markup:
        others = [(id, name) for id, name in self._lists() if id != card.column]
        buttons = [element("button", f"Move to {name}", name="to", value=id) for id, name in others]
        return action_form(*buttons, do="move", card=card.id)

    def _checklists(self, card: Card) -> list[str]:
        return [item.id for item in self._world.checklists.values() if item.card == card.id]

    def _checklist(self, card: Card, id: str) -> Markup:
        checklist = self._world.checklists[id]
        buttons = [
            element("button", f"{_box(item)} {item['name']}", name="item", value=item["id"])
            for item in checklist.items
        ]
        title = element("p", checklist.name, class_="context")
        return join(title, action_form(*buttons, do="check", card=card.id, checklist=id))

    def _attachment(self, attachment: Attachment) -> Markup:
        text = (attachment.data or b"").decode("utf-8", "replace") or attachment.url
        summary = element("summary", attachment.name)
        return element("details", summary, element("pre", text), id=attachment.id)

    def _comment(self, comment: Comment) -> Markup:
        head = [element("span", self._world.members[comment.member].name, class_="who"), " "]
        head.append(element("span", comment.date[11:19], " UTC", class_="time"))
        return element("article", *head, Markup(MARKDOWN.render(comment.text)))

    async def act(self, person: str, form: Form) -> str | None:
        """Comment, label, move or check as a person does; the webhooks are delivered at once."""
        card = str(form.get("card", ""))
        if card not in self._world.cards:
            raise LookupError("no such card")
        match form.get("do"):
            case "write":
                self._trello.comment(card, person, str(form["text"]).replace("\r\n", "\n"))
            case "label" if "add" in form:
                self._trello.add_label(card, str(form["add"]), person)
            case "label":
                self._trello.remove_label(card, str(form["remove"]), person)
            case "move":
                self._trello.move(card, str(form["to"]), person)
            case "check":
                self._check(str(form["checklist"]), str(form["item"]), person)
            case _:
                raise LookupError("no such action")
        acks = await self._trello.deliver()
        return None if all(ack.acked for ack in acks) else LATE

    def _check(self, checklist: str, item: str, person: str) -> None:
        """Check an item, or uncheck it."""
        parent = self._world.checklists[checklist]
        [state] = [entry["state"] for entry in parent.items if entry["id"] == item]
        other = "incomplete" if state == "complete" else "complete"
        card_extras.set_item_state(self._world, parent.card, item, person, other)


def _box(item: Mapping[str, Any]) -> str:
    return "☑" if item["state"] == "complete" else "☐"
