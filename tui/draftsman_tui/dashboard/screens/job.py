"""The desk of one job: its head, and its parts as tabs."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING

from textual import on
from textual.widget import Widget

from draftsman.domain.question import QuestionStatus
from draftsman_tui.common.output import one_line
from draftsman_tui.dashboard import command_table
from draftsman_tui.dashboard.actions import tab_actions
from draftsman_tui.dashboard.dialogs.confirm_dialog import ConfirmDialog
from draftsman_tui.dashboard.job import row_layout
from draftsman_tui.dashboard.job.header import head
from draftsman_tui.dashboard.job.job_tabs import JOB_TABS, NAMES, JobTab
from draftsman_tui.dashboard.job.loader import JobLoader
from draftsman_tui.dashboard.job.snapshot import JobLoaded, JobSnapshot
from draftsman_tui.dashboard.screens.base import BaseScreen, Session
from draftsman_tui.dashboard.widgets.item_list import ItemList, ScrollPosition
from draftsman_tui.dashboard.widgets.job_header import JobHeader
from draftsman_tui.dashboard.widgets.tabs import Tab, Tabs
from draftsman_tui.dashboard.widgets.title import Title

if TYPE_CHECKING:
    from draftsman_tui.dashboard.filter import Filter
    from draftsman_tui.dashboard.saved_views import View
    from draftsman_tui.dashboard.screens.main import MainScreen


class JobScreen(BaseScreen):
    """One job, and the next, and the one before."""

    def __init__(
        self, session: Session, tables: MainScreen, number: int, part: str, key: str | None = None
    ) -> None:
        super().__init__(session)
        self.tables = tables
        """Where it was opened, and what Escape goes back to."""
        self.number = number
        self.part = part
        self.seen: JobSnapshot | None = None
        """The job, once it was looked at."""
        self.words = ""
        """What is looked for in the part; empty: everything is shown."""
        self._look = JobLoader(number, part)
        self._places: dict[str, ScrollPosition] = {}
        if key is not None:
            self._places[part] = ScrollPosition(key)

    @property
    def place(self) -> str:
        """Return `job`."""
        return "job"

    @property
    def look(self) -> JobLoader:
        """The job, and the part in view."""
        return self._look

    @property
    def lines(self) -> ItemList:
        """The part in view."""
        return self.query_one(ItemList)

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
        yield JobHeader()
        yield Tabs()
        yield ItemList()

    def on_mount(self) -> None:
        """Begin with the part that was asked for."""
        self.lines.focus()
        self._take()

    def tick(self) -> None:
        """Draw anew what tells the time."""
        super().tick()
        if self.seen is not None:
            self.query_one(JobHeader).show(head(self.seen, self.live.now))
            if JOB_TABS[self.part].ages:
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
        self._look = JobLoader(number, part)
        self._places.clear()
        self._enter(part, key)

    def reload(self) -> None:
        """Read all of the job anew."""
        self._look.forget()
        super().reload()

    async def open_row(self) -> None:
        """Open the item under the cursor."""
        await tab_actions.open_item(self)

    def is_here(self, command: command_table.DashboardCommand) -> bool:
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

    def apply_search(self, text: str) -> None:
        """Look for it in the part."""
        self.narrow(text)

    async def changes(self, number: int) -> None:
        """Show what the job changed, here."""
        self.show_part("diff")

    async def retried(self, numbers: list[int]) -> None:
        """Offer to go to the job that goes on."""
        if not numbers:
            return
        there = ConfirmDialog(f"Go to D-{numbers[0]}?", f"D-{self.number} goes on as that one.")
        if await self.ask(there):
            self.open_job(numbers[0])

    @on(JobLoaded)
    def _found(self, found: JobLoaded) -> None:
        if found.seen.job.number == self.number:
            first, self.seen = self.seen is None, found.seen
            self._draw()
            if first:
                self.refresh_bindings()

    @on(Tabs.Chosen)
    def _clicked(self, chosen: Tabs.Chosen) -> None:
        self.show_part(chosen.name)

    @on(ItemList.Opened)
    def _opened(self) -> None:
        self.do(command_table.BY_NAME["open"])

    @on(ItemList.Moved)
    def _moved(self) -> None:
        self.position_toasts()
        self._entitle()

    def _enter(self, part: str, key: str | None = None) -> None:
        """Show a part as it was left, or with the cursor on an item."""
        offers = "deliveries" in (self.part, part)
        self.part = self._look.part = part
        self.words = ""
        if key is not None:
            self._places[part] = ScrollPosition(key)
        self._take()
        self.live.show(self._look)
        if offers:
            self.refresh_bindings()

    def _take(self) -> None:
        part = JOB_TABS[self.part]
        place = self._places.get(self.part)
        self.lines.take(place, picks=part.picks, follows=part.follows)
        self._draw()

    def _draw(self) -> None:
        self._entitle()
        tabs = [_tab(nth, part, self.seen) for nth, part in enumerate(JOB_TABS.values(), 1)]
        self.query_one(Tabs).show(tabs, self.part)
        if self.seen is None:
            self.query_one(JobHeader).show([])
        else:
            self.query_one(JobHeader).show(head(self.seen, self.live.now))
        self._draw_part()

    def _draw_part(self) -> None:
        self.lines.show(partial(self._items, JOB_TABS[self.part], self.seen))

    def _items(self, part: JobTab, seen: JobSnapshot | None, width: int) -> list[row_layout.Item]:
        if seen is None:
            return [row_layout.note("looking …", width)]
        items = list(part.items(seen, width, self.live.now))
        if not self.words or not any(one.key for one in items):
            return items
        found = [one for one in items if row_layout.contains_text(one, self.words)]
        nothing = f"nothing here says {one_line(self.words)}; esc takes it off"
        return found or [row_layout.note(nothing, width)]

    def _entitle(self) -> None:
        job = None if self.seen is None else self.seen.job
        parts = [f"D-{self.number}", self.part]
        if self.part == "log" and self.look.run is not None:
            parts[-1] = f"log of run .{self.look.run}"
        if JOB_TABS[self.part].follows and job is not None:
            parts.append("following" if self.lines.following else "f: follow")
        if self.words:
            parts.append(f"/{self.words}")
        if job is not None:
            parts.append(job.ticket_title or job.type)
        self.query_one(Title).show(*parts, read_only=self.read_only)


def _tab(nth: int, part: JobTab, seen: JobSnapshot | None) -> Tab:
    empty = seen is not None and not part.many(seen)
    return Tab(part.name, part.short, str(nth % 10), empty, seen is not None and part.calls(seen))
