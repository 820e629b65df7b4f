"""Board scenario: interactions with cards, labels and comments, and the expected jobs.

    day = Day.begin(trello)        # boards, lists and labels: configure them, register webhooks
    await app.poll()               # the baseline
    await day.live(Way.BOTH, app)
    assert started == day.jobs()   # names of cards, in order

After every step its actions are delivered to the app in each of four sync modes, which all have to
create the same jobs. Steps that cannot give equal results are left out: a label that is added and
removed between two polls, or a card that is archived before its label was read. A person removes a
label only if it is still on the card, so a label swap by the app does not matter.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Protocol

from draftsman_testing.trello import FakeTrello


class BoardApp(Protocol):
    """The application under test."""

    async def poll(self) -> None:
        """Poll the boards once."""

    async def settle(self) -> None:
        """Finish the work in progress."""

    async def finish(self, card: str) -> None:
        """Finish the live job of a card."""


class SyncMode(enum.Enum):
    """How the app learns of actions."""

    WEBHOOK = "webhook alone"
    POLLING = "polling alone"
    BOTH = "both"
    STORM = "both, every delivery doubled and shuffled"


@dataclass
class BoardScenario:
    """Boards with their content by name; `work` and `other` are configured, `attic` is not.

    `fix` and `other_fix` are the labels that create jobs; cards in lists in `ignored` create none.
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
        """Create the boards, with two labeled cards that never create a job."""
        anna = trello.member("Anna Berg")
        ben = trello.member("Ben Cole")
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
        """Return the label of `work` that creates jobs."""
        return self.labels["fix"]

    @property
    def other_fix(self) -> str:
        """Return the label of `other` that creates jobs; its name differs in case."""
        return self.labels["other"]

    @property
    def ignored(self) -> list[str]:
        """Return the lists of `work` in which no label creates a job."""
        return [self.lists["templates"]]

    def name(self, card: str) -> str:
        """Return the name of a card."""
        return next(name for name, id in self.cards.items() if id == card)

    def jobs(self) -> list[str]:
        """Return the expected jobs in order, by the names of their cards."""
        return [name for step in STEPS for name in step.jobs]

    async def live(self, mode: SyncMode, app: BoardApp, *, seed: int = 0) -> None:
        """Run the steps; after each step that is not quiet, synchronize the app."""
        for number, step in enumerate(STEPS):
            for name in step.finished:
                await app.finish(self.cards[name])
                await self.tell(mode, app, seed + number)
            self.trello.later(2)
            step.deed(self)
            if not step.quiet:
                await self.tell(mode, app, seed + number)
        if mode is SyncMode.STORM:
            await self.trello.deliver(replay=True, shuffle=seed)
            await app.settle()
            await app.poll()
            await app.settle()

    async def tell(self, mode: SyncMode, app: BoardApp, seed: int = 0) -> None:
        """Deliver the new actions to the app, then the actions that the app caused."""
        for again in range(2):
            if again and not self.trello.world.pending:
                break
            storm = mode is SyncMode.STORM
            if storm and (seed + again) % 2:
                await app.poll()
            if mode is SyncMode.POLLING:
                self.trello.world.pending.clear()
            elif storm:
                await self.trello.deliver(copies=2, shuffle=seed, together=True)
            else:
                await self.trello.deliver()
            await app.settle()
            if mode is not SyncMode.WEBHOOK:
                await app.poll()
            await app.settle()

    def make(self, name: str, list_name: str = "todo", *, labelled: bool = False) -> None:
        """Create a card in a list."""
        board = self.trello.world.lists[self.lists[list_name]].board
        label = {self.work: "fix", self.other: "other", self.attic: "attic"}[board]
        on = [self.labels[label]] if labelled else []
        card = self.trello.card(board, self.lists[list_name], name, labels=on, by=self.anna)
        self.cards[name] = card

    def on(self, name: str, label: str = "fix") -> None:
        """Add a label to a card, unless it is on it."""
        if self.labels[label] not in self.trello.card_now(self.cards[name])["idLabels"]:
            self.trello.add_label(self.cards[name], self.labels[label], self.anna)

    def off(self, name: str, label: str = "fix") -> None:
        """Remove a label from a card, if it is still on it."""
        if self.labels[label] in self.trello.card_now(self.cards[name])["idLabels"]:
            self.trello.remove_label(self.cards[name], self.labels[label], self.ben)

    def flap(self, name: str) -> None:
        """Add a label, remove it and add it again before the next poll."""
        self.on(name)
        self.off(name)
        self.on(name)

    def copy(self, name: str, copied: str, list_name: str) -> None:
        """Copy a card into a list."""
        self.cards[copied] = self.trello.copy_card(
            self.cards[name], self.lists[list_name], self.ben
        )

    def to_board(self, name: str, board: str, list_name: str) -> None:
        """Move a card to another board."""
        self.trello.move_to_board(self.cards[name], board, self.lists[list_name], self.ben)

    def to_list(self, name: str, list_name: str) -> None:
        """Drag a card to another list."""
        self.trello.move(self.cards[name], self.lists[list_name], self.ben, drag=True)

    def say(self, name: str, text: str, called: str) -> None:
        """Comment on a card."""
        self.comments[called] = self.trello.comment(self.cards[name], self.anna, text)

    def namesake(self) -> None:
        """Create an unconfigured label with the name of the trigger, and use it."""
        self.labels["namesake"] = self.trello.label(self.work, "draftsman", "blue")
        self.make("Namesake")
        self.on("Namesake", "namesake")


@dataclass(frozen=True)
class Step:
    """An interaction, the cards that get a job from it, and the jobs that finish before it.

    After a quiet step nothing is delivered until the next step.
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
