"""Board scenario: interactions with cards, labels and comments, and the expected jobs.

    day = Day.begin(trello)        # boards, lists and labels: configure them, register webhooks
    await app.poll()               # the baseline
    await day.live(Way.BOTH, app)
    assert started == day.jobs()   # names of cards, in order

After every step what happened is brought to the app in one of four ways, and each time the same
jobs have to come of it. What cannot be the same is not in it: a label that is put on and taken off
again between two polls, or a card that is archived before anybody saw its label. A person takes a
label off only if it is still there, so it does not matter whether the app swaps it for another.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Protocol

from tests.support.trello import FakeTrello


class BoardApp(Protocol):
    """Who lives the day."""

    async def poll(self) -> None:
        """Look at the boards once."""

    async def settle(self) -> None:
        """Do all that is to be done now."""

    async def finish(self, card: str) -> None:
        """Let the live job of the card with this id come to its end."""


class SyncMode(enum.Enum):
    """How the app gets to know."""

    WEBHOOK = "webhook alone"
    POLLING = "polling alone"
    BOTH = "both"
    STORM = "both, every delivery doubled and shuffled"


@dataclass
class BoardScenario:
    """The boards, and what is on them by name; `work` and `other` are configured, `attic` is not.

    `fix` and `other_fix` are the labels that make jobs; lists in `ignored` make none.
    """

    trello: FakeTrello
    anna: str
    ben: str
    work: str
    other: str
    attic: str
    lists: dict[str, str]
    labels: dict[str, str]
    cards: dict[str, str] = field(default_factory=dict)
    comments: dict[str, str] = field(default_factory=dict)

    @classmethod
    def begin(cls, trello: FakeTrello) -> BoardScenario:
        """Set the scene: two cards have had their label since yesterday, and never make a job."""
        anna, ben = trello.member("Anna Berg"), trello.member("Ben Cole")
        boards = [trello.board(name, [anna, ben]) for name in ("Work", "Other", "Attic")]
        work, other, attic = boards
        lists = {
            "todo": trello.list(work, "To do"), "doing": trello.list(work, "Doing"),
            "templates": trello.list(work, "Templates"), "inbox": trello.list(other, "Inbox"),
            "attic": trello.list(attic, "Attic"),
        }  # fmt: skip
        labels = {
            "fix": trello.label(work, "draftsman"),
            "other": trello.label(other, "Draftsman", "red"),
            "attic": trello.label(attic, "draftsman"), "nameless": trello.label(work, "", None),
        }  # fmt: skip
        day = cls(trello, anna, ben, work, other, attic, lists, labels)
        day.make("Old", labelled=True)
        day.make("Template", "templates", labelled=True)
        return day

    @property
    def fix(self) -> str:
        """Return the label of `work` that makes jobs."""
        return self.labels["fix"]

    @property
    def other_fix(self) -> str:
        """Return the label of `other` that makes jobs; its name differs in case."""
        return self.labels["other"]

    @property
    def ignored(self) -> list[str]:
        """Return the lists of `work` in which no label makes a job."""
        return [self.lists["templates"]]

    def name(self, card: str) -> str:
        """Return the name by which a card is known here."""
        return next(name for name, id in self.cards.items() if id == card)

    def jobs(self) -> list[str]:
        """Return the cards of all jobs that come of the day, in order, one name for each job."""
        return [name for step in STEPS for name in step.jobs]

    async def live(self, way: SyncMode, app: BoardApp, *, seed: int = 0) -> None:
        """Live the day; after each step but the quiet ones, the app gets to know."""
        for number, step in enumerate(STEPS):
            for name in step.finished:
                await app.finish(self.cards[name])
                await self.tell(way, app, seed + number)
            self.trello.later(2)
            step.deed(self)
            if not step.quiet:
                await self.tell(way, app, seed + number)
        if way is SyncMode.STORM:
            await self.trello.deliver(replay=True, shuffle=seed)
            await app.settle()
            await app.poll()
            await app.settle()

    async def tell(self, way: SyncMode, app: BoardApp, seed: int = 0) -> None:
        """Let the app know what happened, and then of what it did itself."""
        for again in range(2):
            storm = way is SyncMode.STORM
            if storm and (seed + again) % 2:
                await app.poll()
            if way is SyncMode.POLLING:
                self.trello.world.pending.clear()
            elif storm:
                await self.trello.deliver(copies=2, shuffle=seed, together=True)
            else:
                await self.trello.deliver()
            await app.settle()
            if way is not SyncMode.WEBHOOK:
                await app.poll()
            await app.settle()

    def make(self, name: str, place: str = "todo", *, labelled: bool = False) -> None:
        """Make a card in one of the lists."""
        board = self.trello.world.lists[self.lists[place]].board
        there = {self.work: "fix", self.other: "other", self.attic: "attic"}[board]
        on = [self.labels[there]] if labelled else []
        made = self.trello.card(board, self.lists[place], name, labels=on, by=self.anna)
        self.cards[name] = made

    def on(self, name: str, label: str = "fix") -> None:
        """Put a label on a card, if it is not there."""
        if self.labels[label] not in self.trello.card_now(self.cards[name])["idLabels"]:
            self.trello.add_label(self.cards[name], self.labels[label], self.anna)

    def off(self, name: str, label: str = "fix") -> None:
        """Take a label off a card, if it is still there."""
        if self.labels[label] in self.trello.card_now(self.cards[name])["idLabels"]:
            self.trello.remove_label(self.cards[name], self.labels[label], self.ben)

    def flap(self, name: str) -> None:
        """Put a label on, take it off and put it on, before anybody looks."""
        self.on(name)
        self.off(name)
        self.on(name)

    def copy(self, name: str, copied: str, place: str) -> None:
        """Copy a card into a list."""
        self.cards[copied] = self.trello.copy_card(self.cards[name], self.lists[place], self.ben)

    def to_board(self, name: str, board: str, place: str) -> None:
        """Move a card to another board."""
        self.trello.move_to_board(self.cards[name], board, self.lists[place], self.ben)

    def to_list(self, name: str, place: str) -> None:
        """Drag a card to another list."""
        self.trello.move(self.cards[name], self.lists[place], self.ben, drag=True)

    def say(self, name: str, text: str, called: str) -> None:
        """Comment on a card."""
        self.comments[called] = self.trello.comment(self.cards[name], self.anna, text)

    def namesake(self) -> None:
        """Make a second label of the trigger's name, which nobody configured, and use it."""
        self.labels["namesake"] = self.trello.label(self.work, "draftsman", "blue")
        self.make("Namesake")
        self.on("Namesake", "namesake")


@dataclass(frozen=True)
class Step:
    """Something that people do, the cards that get a job by it, and which jobs ended before it.

    After a quiet step nothing reaches the app until the next step.
    """

    what: str
    deed: Callable[[BoardScenario], None]
    jobs: tuple[str, ...] = ()
    finished: tuple[str, ...] = ()
    quiet: bool = False


STEPS: Final = (
    Step("a card without a label", lambda day: day.make("Parser")),
    Step("its label", lambda day: day.on("Parser"), ("Parser",)),
    Step("taken off while the job lives", lambda day: day.off("Parser")),
    Step("put on again while it lives", lambda day: day.on("Parser")),
    Step("taken off after its end", lambda day: day.off("Parser"), finished=("Parser",)),
    Step("put on again after its end", lambda day: day.on("Parser"), ("Parser",)),
    Step("a comment", lambda day: day.say("Parser", "2", "answer")),
    Step(
        "that is edited", lambda day: day.trello.edit_comment(day.comments["answer"], "no, 1 then")
    ),
    Step("and deleted", lambda day: day.trello.delete_comment(day.comments["answer"])),
    Step("a card with the label", lambda day: day.make("Docs", labelled=True), ("Docs",)),
    Step("on and off and on at once", lambda day: day.make("Flap"), quiet=True),
    Step("before anybody looks", lambda day: day.flap("Flap"), ("Flap",)),
    Step("a copy in an ignored list", lambda day: day.copy("Template", "Twin", "templates")),
    Step("a copy elsewhere", lambda day: day.copy("Template", "Copy", "todo"), ("Copy",)),
    Step("a label on a board of nobody", lambda day: day.make("Attic", "attic", labelled=True)),
    Step("moved in", lambda day: day.to_board("Attic", day.work, "todo"), ("Attic",)),
    Step("moved out while the job lives", lambda day: day.to_board("Docs", day.other, "inbox")),
    Step("an old card moves", lambda day: day.to_list("Old", "doing")),
    Step("and is talked about", lambda day: day.say("Old", "@someone look", "talk")),
    Step("the other label", lambda day: day.make("There", "inbox", labelled=True), ("There",)),
    Step("a card", lambda day: day.make("Shelved", labelled=True), ("Shelved",)),
    Step("is archived", lambda day: day.trello.archive(day.cards["Shelved"], day.ben)),
    Step("and brought back", lambda day: day.trello.unarchive(day.cards["Shelved"], day.ben)),
    Step("a card", lambda day: day.make("Gone", labelled=True), ("Gone",)),
    Step("is deleted", lambda day: day.trello.delete_card(day.cards["Gone"], day.ben)),
    Step("while the app sleeps, a card", lambda day: day.make("Night"), quiet=True),
    Step("gets its label", lambda day: day.on("Night"), quiet=True),
    Step("is talked about", lambda day: day.say("Night", "hurry", "hurry"), quiet=True),
    Step("and moves", lambda day: day.to_list("Night", "doing"), ("Night",)),
    Step("a label without a name", lambda day: day.on("Old", "nameless")),
    Step("a namesake of the label", lambda day: day.namesake()),
    Step("the label is renamed", lambda day: day.trello.rename_label(day.fix, "robot", day.ben)),
    Step("and used", lambda day: day.make("Renamed", labelled=True), ("Renamed",)),
    Step("the label is deleted", lambda day: day.trello.delete_label(day.fix, day.ben)),
    Step("a last card", lambda day: day.make("Last")),
)  # fmt: skip
