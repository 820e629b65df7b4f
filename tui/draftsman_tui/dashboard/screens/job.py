"""The desk of one job: its head, and its parts as tabs."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING

from textual import on
from textual.widget import Widget

from draftsman.domain.question import QuestionStatus
from draftsman_tui.cli.output import one_line
from draftsman_tui.dashboard import commands
from draftsman_tui.dashboard.job import acts, rows
from draftsman_tui.dashboard.job.head import head
from draftsman_tui.dashboard.job.look import JobLook
from draftsman_tui.dashboard.job.parts import NAMES, PARTS, Part
from draftsman_tui.dashboard.job.seen import JobFound, JobSeen
from draftsman_tui.dashboard.screens.confirm import Confirm
from draftsman_tui.dashboard.screens.desk import Desk, Session
from draftsman_tui.dashboard.widgets.job_head import JobHead
from draftsman_tui.dashboard.widgets.lines import Lines, Place
from draftsman_tui.dashboard.widgets.tabs import Tab, Tabs
from draftsman_tui.dashboard.widgets.title import Title

if TYPE_CHECKING:
    from draftsman_tui.dashboard.filter import Filter
    from draftsman_tui.dashboard.saved import View
    from draftsman_tui.dashboard.screens.main import MainScreen


class JobScreen(Desk):
    """One job, and the next, and the one before."""

    def __init__(
        self, session: Session, tables: MainScreen, number: int, part: str, key: str | None = None
    ) -> None:
        super().__init__(session)
        self.tables = tables
        """Where it was opened, and what Escape goes back to."""
        self.number = number
        self.part = part
        self.seen: JobSeen | None = None
        """The job, once it was looked at."""
        self.words = ""
        """What is looked for in the part; empty: everything is shown."""
        self._look = JobLook(number, part)
        self._places: dict[str, Place] = {}
        if key is not None:
            self._places[part] = Place(key)

    @property
    def place(self) -> str:
        """Return `job`."""
        return "job"

    @property
    def look(self) -> JobLook:
        """The job, and the part in view."""
        return self._look

    @property
    def lines(self) -> Lines:
        """The part in view."""
        return self.query_one(Lines)

    @property
    def home(self) -> Widget:
        """The part in view."""
        return self.lines

    @property
    def cursor_line(self) -> int | None:
        """The line of the item under the cursor."""
        return self.lines.cursor_line

    @property
    def chosen(self) -> str | None:
        """The key of the item under the cursor."""
        item = self.lines.chosen
        return None if item is None else item.key

    def jobs(self, *, optional: bool = False) -> list[int]:
        """Return the job."""
        return [self.number]

    @property
    def question(self) -> tuple[int, int] | None:
        """The question under the cursor, if it is open."""
        if self.part != "questions" or self.seen is None:
            return None
        return next(
            (
                (one.job, one.ordinal)
                for one in self.seen.questions
                if one.name == self.chosen and one.status is QuestionStatus.OPEN
            ),
            None,
        )

    @property
    def deliveries(self) -> list[int]:
        """The delivery under the cursor."""
        return [int(self.chosen)] if self.part == "deliveries" and self.chosen else []

    @property
    def ids(self) -> list[str]:
        """The id of what is under the cursor, where it has one of its own; else of the job."""
        own = {"questions", "deliveries", "runs", "usage", "chain"}
        return [self.chosen] if self.part in own and self.chosen else [f"D-{self.number}"]

    @property
    def invoker(self) -> str | None:
        """Who asked for the job."""
        return None if self.seen is None else self.seen.job.invoker_id

    def body(self) -> Iterable[Widget]:
        """Return the head, the tabs and the parts."""
        yield JobHead()
        yield Tabs()
        yield Lines()

    def on_mount(self) -> None:
        """Begin with the part that was asked for."""
        self.lines.focus()
        self._take()

    def tick(self) -> None:
        """Draw anew what tells the time."""
        super().tick()
        if self.seen is not None:
            self.query_one(JobHead).show(head(self.seen, self.live.now))
            if PARTS[self.part].ages:
                self._draw_part()

    def go(self, view: str, wanted: Filter | None = None) -> None:
        """Go back to the tables, to this one."""
        self.app.pop_screen()
        self.tables.go(view, wanted)

    def show_view(self, view: View, name: str) -> None:
        """Go back to the tables, to this view."""
        self.app.pop_screen()
        self.tables.show_view(view, name)

    def open_job(self, number: int, part: str = "timeline", key: str | None = None) -> None:
        """Show another job here."""
        self.number, self.seen, self.words = number, None, ""
        self._look = JobLook(number, part)
        self._places.clear()
        self._enter(part, key)

    def again(self) -> None:
        """Read all of the job anew."""
        self._look.forget()
        super().again()

    async def open_row(self) -> None:
        """Open the item under the cursor."""
        await acts.open_item(self)

    def is_here(self, command: commands.Command) -> bool:
        """Offer to send one again only where deliveries are in view."""
        in_view = command.name != "redeliver" or self.part == "deliveries"
        return in_view and super().is_here(command)

    def show_part(self, name: str, key: str | None = None) -> None:
        """Show a part, with the cursor on an item of it."""
        self._places[self.part] = self.lines.leave()
        self._enter(name, key)

    def show_run(self, run: int | None) -> None:
        """Show the log of this run alone, or of all."""
        self._look.show_run(run)
        self._places[self.part] = self.lines.leave()
        self._places.pop("log", None)
        self._enter("log")

    def turn(self, by: int) -> None:
        """Show the next part, or the one before."""
        self.show_part(NAMES[(NAMES.index(self.part) + by) % len(NAMES)])

    def narrow(self, words: str) -> None:
        """Show only the items that say this."""
        self.words = words
        self._draw()

    def look_for(self, text: str) -> None:
        """Look for it in the part."""
        self.narrow(text)

    async def changes(self, number: int) -> None:
        """Show what the job changed, here."""
        self.show_part("diff")

    async def retried(self, numbers: list[int]) -> None:
        """Offer to go to the job that goes on."""
        if not numbers:
            return
        there = Confirm(f"Go to D-{numbers[0]}?", f"D-{self.number} goes on as that one.")
        if await self.ask(there):
            self.open_job(numbers[0])

    @on(JobFound)
    def _found(self, found: JobFound) -> None:
        if found.seen.job.number == self.number:
            first, self.seen = self.seen is None, found.seen
            self._draw()
            if first:
                self.refresh_bindings()

    @on(Tabs.Chosen)
    def _clicked(self, chosen: Tabs.Chosen) -> None:
        self.show_part(chosen.name)

    @on(Lines.Opened)
    def _opened(self) -> None:
        self.do(commands.BY_NAME["open"])

    @on(Lines.Moved)
    def _moved(self) -> None:
        self.keep_toasts_clear()
        self._entitle()

    def _enter(self, part: str, key: str | None = None) -> None:
        """Show a part as it was left, or with the cursor on an item."""
        offers = "deliveries" in (self.part, part)
        self.part = self._look.part = part
        self.words = ""
        if key is not None:
            self._places[part] = Place(key)
        self._take()
        self.live.show(self._look)
        if offers:
            self.refresh_bindings()

    def _take(self) -> None:
        part = PARTS[self.part]
        place = self._places.get(self.part)
        self.lines.take(place, picks=part.picks, follows=part.follows)
        self._draw()

    def _draw(self) -> None:
        self._entitle()
        tabs = [_tab(nth, part, self.seen) for nth, part in enumerate(PARTS.values(), 1)]
        self.query_one(Tabs).show(tabs, self.part)
        if self.seen is None:
            self.query_one(JobHead).show([])
        else:
            self.query_one(JobHead).show(head(self.seen, self.live.now))
        self._draw_part()

    def _draw_part(self) -> None:
        self.lines.show(partial(self._items, PARTS[self.part], self.seen))

    def _items(self, part: Part, seen: JobSeen | None, width: int) -> list[rows.Item]:
        if seen is None:
            return [rows.note("looking …", width)]
        items = list(part.items(seen, width, self.live.now))
        if not self.words or not any(one.key for one in items):
            return items
        found = [one for one in items if rows.holds(one, self.words)]
        nothing = f"nothing here says {one_line(self.words)}; esc takes it off"
        return found or [rows.note(nothing, width)]

    def _entitle(self) -> None:
        job = None if self.seen is None else self.seen.job
        parts = [f"D-{self.number}", self.part]
        if self.part == "log" and self.look.run is not None:
            parts[-1] = f"log of run .{self.look.run}"
        if PARTS[self.part].follows and job is not None:
            parts.append("following" if self.lines.following else "f: follow")
        if self.words:
            parts.append(f"/{self.words}")
        if job is not None:
            parts.append(job.ticket_title or job.type)
        self.query_one(Title).show(*parts, read_only=self.read_only)


def _tab(nth: int, part: Part, seen: JobSeen | None) -> Tab:
    empty = seen is not None and not part.many(seen)
    return Tab(part.name, part.short, str(nth % 10), empty, seen is not None and part.calls(seen))
