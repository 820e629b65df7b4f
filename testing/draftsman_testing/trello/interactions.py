"""Interactions of people with the fake Trello. `by` and `member` are member ids."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from draftsman_testing.fake.server import FakeServer
from draftsman_testing.trello import serializers
from draftsman_testing.trello.entities import Attachment, Call, Card, Comment, Json
from draftsman_testing.trello.operations import boards, card_extras, cards, comments, labels
from draftsman_testing.trello.world import World, iso


class Interactions(FakeServer[Call]):
    """Creates boards and cards, and performs actions of people; none is a call of the app.

    The default actor is `someone`, a member of every board. Raises ApiError where Trello refuses.
    """

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.world = world
        if not world.bot:
            world.bot = boards.add_member(world, "Draftsman Bot").id
            world.someone = boards.add_member(world, "Someone Else").id
        self.bot_member = world.bot
        self.someone = world.someone

    def member(self, name: str) -> str:
        """Add a person; return the id. The user name is the name in small letters."""
        return boards.add_member(self.world, name).id

    def username(self, member: str) -> str:
        """Return the username of a member."""
        return self.world.members[member].username

    def board(self, name: str, members: Sequence[str] = (), *, bot: bool = True) -> str:
        """Add a board; return the id. The bot is a member by default."""
        all_members = {self.someone, *members, *([self.bot_member] if bot else [])}
        return boards.add_board(self.world, name, all_members).id

    def board_url(self, board: str) -> str:
        """Return the URL of a board."""
        return str(serializers.board(self.world, self.world.boards[board])["url"])

    def list(self, board: str, name: str) -> str:
        """Add a list at the end of a board; return the id."""
        return boards.add_list(self.world, board, name, self.someone).id

    def archive_list(self, list_id: str, closed: bool = True) -> None:
        """Archive a list, or bring it back."""
        boards.close_list(self.world, list_id, self.someone, closed)

    def label(self, board: str, name: str, color: str | None = "green") -> str:
        """Add a label to a board; return the id."""
        return boards.add_label(self.world, board, name, color, self.someone).id

    def rename_label(self, label: str, name: str, by: str | None = None) -> None:
        """Give a label another name."""
        boards.rename_label(self.world, label, name, by or self.someone)

    def delete_label(self, label: str, by: str | None = None) -> None:
        """Delete a label from its board and from every card."""
        boards.delete_label(self.world, label, by or self.someone)

    def custom_field(
        self, board: str, name: str, type: str = "text", options: Sequence[str] = ()
    ) -> str:
        """Add a custom field to a board, a list with its options; return the id."""
        return str(boards.add_field(self.world, board, name, type, options)["id"])

    def card(
        self,
        board: str,
        list_id: str,
        name: str,
        *,
        desc: str = "",
        labels: Sequence[str] = (),
        members: Sequence[str] = (),
        by: str | None = None,
    ) -> str:
        """Create a card, optionally with labels; return the id."""
        assert self.world.lists[list_id].board == board, "the list is on another board"
        actor = by or self.someone
        card = cards.make(
            self.world, list_id, name, actor, desc=desc, label_ids=labels, members=members
        )
        return card.id

    def cards(
        self, board: str, list_id: str, count: int, *, labels: Sequence[str] = ()
    ) -> Sequence[str]:
        """Create cards, each in its own second, without webhooks."""
        cards = []
        for number in range(count):
            self.later(1)
            cards.append(self.card(board, list_id, f"card {number}", labels=labels))
        self.world.pending.clear()
        return cards

    def next_second(self) -> None:
        """Advance the clock to the start of a second: ids contain the second of their creation."""
        self.later(1.05 - self.world.now() % 1)

    def copy_card(self, card: str, list_id: str | None = None, by: str | None = None) -> str:
        """Copy a card, into its list or another; return the id of the copy."""
        target = list_id or self.world.cards[card].column
        return cards.copy_card(self.world, card, target, by or self.someone).id

    def move(self, card: str, list_id: str, by: str | None = None, *, drag: bool = False) -> None:
        """Move a card to another list of the board; to drag it makes two actions of it."""
        cards.move(self.world, card, list_id, by or self.someone, drag=drag)

    def move_to_board(self, card: str, board: str, list_id: str, by: str | None = None) -> None:
        """Move a card to a list of another board."""
        cards.move_to_board(self.world, card, board, list_id, by or self.someone)

    def archive(self, card: str, by: str | None = None) -> None:
        """Archive a card."""
        cards.change(self.world, card, by or self.someone, closed=True)

    def unarchive(self, card: str, by: str | None = None) -> None:
        """Bring a card back."""
        cards.change(self.world, card, by or self.someone, closed=False)

    def rename(self, card: str, name: str, by: str | None = None) -> None:
        """Change the title of a card."""
        cards.change(self.world, card, by or self.someone, name=name)

    def describe(self, card: str, desc: str, by: str | None = None) -> None:
        """Change the description of a card."""
        cards.change(self.world, card, by or self.someone, desc=desc)

    def delete_card(self, card: str, by: str | None = None) -> None:
        """Delete a card."""
        cards.delete(self.world, card, by or self.someone)

    def assign(self, card: str, member: str, by: str | None = None) -> None:
        """Put a person on a card."""
        cards.join(self.world, card, member, by or self.someone)

    def add_label(self, card: str, label: str, by: str | None = None) -> None:
        """Add a label to a card."""
        labels.put(self.world, card, label, by or self.someone)

    def remove_label(self, card: str, label: str, by: str | None = None) -> None:
        """Remove a label from a card."""
        labels.take(self.world, card, label, by or self.someone)

    def comment(self, card: str, member: str, text: str) -> str:
        """Comment on a card; return the id of the comment, which is that of its action."""
        return str(comments.say(self.world, card, member, text)["id"])

    def edit_comment(self, comment: str, text: str, by: str | None = None) -> None:
        """Edit a comment as its author."""
        author = comments.find(self.world, comment)["idMemberCreator"]
        comments.edit(self.world, comment, by or author, text)

    def delete_comment(self, comment: str, by: str | None = None) -> None:
        """Delete a comment as its author."""
        author = comments.find(self.world, comment)["idMemberCreator"]
        comments.delete(self.world, comment, by or author)

    def add_checklist(
        self, card: str, name: str, items: Sequence[str] = (), done: Sequence[str] = ()
    ) -> str:
        """Add a checklist to a card; return the id. `done` are the checked items."""
        checklist = card_extras.add_checklist(self.world, card, self.someone, name)
        for item in [*items, *(extra for extra in done if extra not in items)]:
            card_extras.add_item(self.world, checklist.id, self.someone, item, item in done)
        return checklist.id

    def check_item(
        self, checklist: str, name: str, by: str | None = None, *, checked: bool = True
    ) -> None:
        """Check or uncheck the item of a checklist whose name contains a text."""
        parent = self.world.checklists[checklist]
        (item,) = [item["id"] for item in parent.items if name in item["name"]]
        state = "complete" if checked else "incomplete"
        card_extras.set_item_state(self.world, parent.card, item, by or self.someone, state)

    def remove_checklist(self, checklist: str, by: str | None = None) -> None:
        """Remove a checklist from its card."""
        card_extras.remove_checklist(self.world, checklist, by or self.someone)

    def set_due(self, card: str, when: datetime | None, by: str | None = None) -> None:
        """Move or remove the due date of a card."""
        due = None if when is None else iso(when.timestamp())
        cards.change(self.world, card, by or self.someone, due=due)

    def attach(
        self,
        card: str,
        name: str,
        data: bytes | None = b"data",
        *,
        url: str = "",
        by: str | None = None,
    ) -> str:
        """Attach a file, or an address with `data=None`; return the id."""
        actor = by or self.someone
        attachment = card_extras.attach(
            self.world, card, actor, name, data=None if url else data, url=url, max_bytes=2**28
        )
        return attachment.id

    def choose_option(self, card: str, field: str, text: str) -> None:
        """Choose an option of a list."""
        options = self.world.custom_fields[field]["options"]
        (option,) = (entry["id"] for entry in options if entry["value"]["text"] == text)
        card_extras.set_field(self.world, card, field, self.someone, None, option)

    def set_field(self, card: str, field: str, value: Json) -> None:
        """Set a custom field, such as `{"text": "x"}`."""
        card_extras.set_field(self.world, card, field, self.someone, value)

    def comments(self, card: str) -> Sequence[Comment]:
        """Return the comments of a card as people see them, oldest first."""
        return comments.of(self.world, card)

    def attachments(self, card: str) -> Sequence[Attachment]:
        """Return the attachments of a card, oldest first."""
        return self.world.cards[card].attachments

    def card_now(self, card: str) -> Json:
        """Return a card as GET /cards/{id} shows it; a LookupError if it was deleted."""
        return card_extras.whole_card(self.world, card)

    def labels_of(self, card: str) -> Sequence[str]:
        """Return the names of the labels on a card."""
        return [self.world.labels[id].name for id in self._card(card).labels]

    def _card(self, id: str) -> Card:
        return self.world.cards[id]
