"""Job screen: header and tabs of a job."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, Protocol

from rich.text import Text
from textual import on
from textual.widget import Widget

from draftsman.actions.action import About, Action
from draftsman.formats.invisible import one_line
from draftsman.ids import job_name, run_text
from draftsman_tui.common.job_pages import source_of
from draftsman_tui.dashboard.changes.diff_pane import DiffPane
from draftsman_tui.dashboard.changes.tab import truncation
from draftsman_tui.dashboard.command import DashboardCommand
from draftsman_tui.dashboard.dialogs.simple_dialogs import ConfirmDialog
from draftsman_tui.dashboard.frame.base_screen import BaseScreen
from draftsman_tui.dashboard.frame.session import Session
from draftsman_tui.dashboard.jobs.details import row_layout
from draftsman_tui.dashboard.jobs.details.header import head
from draftsman_tui.dashboard.jobs.details.job_tabs import JOB_TABS
from draftsman_tui.dashboard.jobs.details.loader import JobLoader
from draftsman_tui.dashboard.jobs.details.phases import chart, job_phases
from draftsman_tui.dashboard.jobs.details.snapshot import JobLoaded, JobPatch, JobSnapshot
from draftsman_tui.dashboard.jobs.details.tab import JobTab
from draftsman_tui.dashboard.tables.filter import Filter
from draftsman_tui.dashboard.tables.saved_views import View
from draftsman_tui.dashboard.widgets.item_list import ItemList, ScrollPosition
from draftsman_tui.dashboard.widgets.row_renderer import JobHeader, PhaseChart
from draftsman_tui.dashboard.widgets.screen_lines import Title
from draftsman_tui.dashboard.widgets.tabs import Tab, Tabs

CARD_ROWS: Final = 30
"""Rows from which the header is a card."""
MATCHES: Final = ("next-match", "previous-match")
"""Commands of a search of the log."""


class JobTable(Protocol):
    """Table screen below a job screen."""

    def show_table(self, view: str, table_filter: Filter | None = None) -> None:
        """Show a table; None keeps its filter."""

    def show_view(self, view: View, name: str) -> None:
        """Show a saved view."""

    def release_rows(self, jobs: Sequence[int] | None = None) -> None:
        """Keep the cursor in its place when the rows of jobs leave it."""

    def keep_rows(self) -> None:
        """Let the cursor stay on its row again."""

    def next_job(self, by: int, number: int) -> int | None:
        """Move the cursor to the next row (-1: previous) of a different job; None at the end."""


class JobScreen(BaseScreen):
    """A job, with navigation to its neighbors in the table."""

    def __init__(
        self, session: Session, main: JobTable, number: int, tab: str, key: str | None = None
    ) -> None:
        super().__init__(session)
        self.main = main
        """Table screen below, which Escape returns to."""
        self.number = number
        self.tab = tab
        self.snapshot: JobSnapshot | None = None
        """None until the job is loaded."""
        self.search_text = ""
        """Text that items must contain; empty shows all items."""
        self._patch: JobPatch | None = None
        """The patch that the diff viewer shows."""
        self._match: str | None = None
        """Position of the match in view among those in the log."""
        self._loader = JobLoader(number, tab)
        self._positions: dict[str, ScrollPosition] = {}
        if key is not None:
            self._positions[tab] = ScrollPosition(key)

    @property
    def view_name(self) -> str:
        return "job"

    @property
    def loader(self) -> JobLoader:
        return self._loader

    @property
    def item_list(self) -> ItemList:
        return self.query_one(ItemList)

    @property
    def diff_pane(self) -> DiffPane:
        return self.query_one(DiffPane)

    @property
    def focus_target(self) -> Widget:
        return self.diff_pane.view if self.diff_pane.display else self.item_list

    @property
    def selected_key(self) -> str | None:
        item = self.item_list.selected
        return None if item is None else item.key

    def jobs(self, *, optional: bool = False) -> list[int]:
        return [self.number]

    def release_rows(self, jobs: Sequence[int] | None = None) -> None:
        self.main.release_rows([self.number] if jobs is None else jobs)

    def keep_rows(self) -> None:
        self.main.keep_rows()

    @property
    def question(self) -> tuple[int, int] | None:
        for question in self.snapshot.open_questions if self.snapshot is not None else ():
            if self.tab == "questions" and question.name == self.selected_key:
                return question.job, question.ordinal
        return None

    @property
    def deliveries(self) -> list[int]:
        return [int(self.selected_key)] if self.tab == "deliveries" and self.selected_key else []

    @property
    def ids(self) -> list[str]:
        if JOB_TABS[self.tab].has_ids and self.selected_key:
            return [self.selected_key.rpartition(" ")[2]]
        return [job_name(self.number)]

    @property
    def invokers(self) -> Sequence[str]:
        return () if self.snapshot is None else (self.snapshot.job.invoker_id,)

    @property
    def position(self) -> object:
        return self.number, self.tab, self.search_text

    def states(self, action: Action[Any, ..., Any]) -> Sequence[Any] | None:
        if self.snapshot is None or action.about not in (About.JOB, About.QUESTION):
            return None
        return [self.snapshot.details.wait_reason]

    def body(self) -> Iterable[Widget]:
        yield JobHeader()
        yield Tabs()
        yield PhaseChart()
        yield ItemList()
        yield DiffPane()

    def on_mount(self) -> None:
        self.diff_pane.display = False
        self.item_list.focus()
        self._show_items()

    def tick(self) -> None:
        super().tick()
        if self.snapshot is not None:
            self._draw_header()
            if JOB_TABS[self.tab].ticks:
                self._draw_tab()

    def show_table(self, view: str, table_filter: Filter | None = None) -> None:
        self.app.pop_screen()
        self.main.show_table(view, table_filter)

    def show_view(self, view: View, name: str) -> None:
        self.app.pop_screen()
        self.main.show_view(view, name)

    def open_job(self, number: int, tab: str = "timeline", key: str | None = None) -> None:
        self.number = number
        self.snapshot = None
        self.search_text = ""
        self._loader = JobLoader(number, tab)
        self._positions.clear()
        self._enter(tab, key)

    def reload(self) -> None:
        """Reload the whole job."""
        self._loader.invalidate()
        super().reload()

    def is_here(self, command: DashboardCommand) -> bool:
        """Offer `redeliver` only in the deliveries tab, and matches only in a search of the log."""
        in_view = command.name != "redeliver" or self.tab == "deliveries"
        if command.name in MATCHES:
            in_view = self.has_matches
        return in_view and super().is_here(command)

    def show_tab(self, name: str, key: str | None = None) -> None:
        """Show a tab, with the cursor on an item."""
        self._positions[self.tab] = self.item_list.leave()
        self._enter(name, key)

    def show_run(self, run: int | None) -> None:
        """Show the log of a run, or of all runs."""
        self._loader.show_run(run)
        self._positions[self.tab] = self.item_list.leave()
        self._positions.pop("log", None)
        self._enter("log")

    def fold_log(self, *, full: bool | None = None) -> None:
        """Fold the long texts of the log, or show all of them; None: the other way round."""
        if self.snapshot is None or (view := self.snapshot.log) is None:
            return
        full = not view.full if full is None else full
        self._loader.fold_log(full=full)
        self.snapshot = replace(self.snapshot, log=replace(view, full=full))
        self._draw_tab()

    def switch_tab(self, by: int) -> None:
        """Show the next tab, or the previous for -1."""
        names = [tab.name for tab in self._tabs()]
        self.show_tab(names[(names.index(self.tab) + by) % len(names)])

    def search(self, text: str) -> None:
        """Show only the items that contain the text; in the log, go to a line with it."""
        self.search_text = text
        self._match = None
        if self.searches_log:
            self.fold_log(full=True)
        self.item_list.clear_match()
        self._draw()
        if text and self.has_matches:
            self.show_match(0)
        self.diff_pane.view.searches = self.tab == "diff" and bool(text)
        self.refresh_bindings()

    @property
    def searches_log(self) -> bool:
        """Whether a search of the log is active, which keeps the lines around its matches."""
        return bool(self.search_text) and self.tab == "log"

    @property
    def has_matches(self) -> bool:
        """Whether n and N go to the matches of a search, of the log or the diff."""
        return self.searches_log or (bool(self.search_text) and self.diff_pane.display)

    def show_match(self, by: int) -> None:
        """Go to the next match in the log or the diff (1), the previous (-1) or the nearest (0)."""
        if self.diff_pane.display:
            matched = self.diff_pane.view.find(self.search_text, by)
            self._match = None if matched else "no match"
            self._show_title()
            return
        items = self.item_list.items
        matches = [
            nth
            for nth, item in enumerate(items)
            if item.key and row_layout.contains_text(item, self.search_text)
        ]
        at = self.item_list.show_match(matches, by)
        self._match = "no match" if at is None else f"{at + 1:,} of {len(matches):,}"
        self._show_title()

    def apply_search(self, text: str) -> None:
        self.search(text)

    async def show_diff(self, number: int) -> None:
        if number == self.number:
            self.show_tab("diff")
        else:
            await super().show_diff(number)

    async def after_retry(self, numbers: list[int]) -> None:
        """Offer to open the new job."""
        if not numbers:
            return
        dialog = ConfirmDialog(
            f"Open {job_name(numbers[0])}?", f"It is the retry of {job_name(self.number)}."
        )
        if await self.ask(dialog):
            self.open_job(numbers[0])

    @on(JobLoaded)
    def _job_loaded(self, loaded: JobLoaded) -> None:
        if loaded.snapshot.job.number == self.number:
            self.snapshot = replace(loaded.snapshot, hint=self.hints_of(self.number))
            self._draw()
            self.refresh_bindings()

    @on(Tabs.Chosen)
    def _clicked(self, chosen: Tabs.Chosen) -> None:
        with self.leaving_messages():
            self.show_tab(chosen.name)

    @on(ItemList.Opened)
    def _opened(self) -> None:
        self.run(self.commands["open"])

    @on(ItemList.Moved)
    def _moved(self) -> None:
        self._show_title()

    def _enter(self, tab: str, key: str | None = None) -> None:
        """Show a tab at its last position, or with the cursor on an item."""
        commands_change = "deliveries" in (self.tab, tab)
        self.tab = self._loader.tab = tab
        self.search_text = ""
        self._match = None
        if key is not None:
            self._positions[tab] = ScrollPosition(key)
        self._show_items()
        self.load()
        if commands_change:
            self.refresh_bindings()

    def _show_items(self) -> None:
        tab = JOB_TABS[self.tab]
        position = self._positions.get(self.tab)
        self.item_list.reset(position, selectable=tab.selectable, follows=tab.follows)
        self._draw()

    def _draw(self) -> None:
        self._show_title()
        tabs = [_tab_label(tab, self.snapshot) for tab in self._tabs()]
        self.query_one(Tabs).show(tabs, self.tab)
        self._draw_header()
        self._draw_tab()

    def _tabs(self) -> list[JobTab]:
        """Return the tabs that the job has, and that which is shown."""
        has_all = self.snapshot is None or self.snapshot.job.request is not None
        tabs = JOB_TABS.values()
        return [tab for tab in tabs if has_all or not tab.of_request or tab.name == self.tab]

    def _draw_header(self) -> None:
        """Draw the header: a card with a bar on screens of enough rows."""
        header = self.query_one(JobHeader)
        snapshot = self.snapshot
        now = self.refresher.now
        is_card = self.size.height >= CARD_ROWS
        header.set_class(is_card, "card")
        width = max(20, self.size.width - 6)
        rows = [] if snapshot is None else head(snapshot, now, width, self.hints_of(self.number))
        title = "" if snapshot is None else snapshot.job.title
        header.border_title = Text(one_line(title)) if is_card else None
        header.show(rows)
        self._draw_chart()

    def _draw_chart(self) -> None:
        """Draw the phases of the job above its events and its runs, on a third of the screen."""
        snapshot = self.snapshot
        rows = list[row_layout.Row]()
        if snapshot is not None and JOB_TABS[self.tab].has_chart:
            now = self.refresher.now
            most = max(5, self.size.height // 3 - 2)
            phases = job_phases(
                snapshot.job, snapshot.details.runs, snapshot.details.questions, now
            )
            rows = chart(phases, max(20, self.size.width - 4), most, over=snapshot.over)
        self.query_one(PhaseChart).show(rows)

    def on_resize(self) -> None:
        self._draw_header()
        self._show_title()

    def _draw_tab(self) -> None:
        self._draw_diff()
        self.item_list.show(partial(self._items, JOB_TABS[self.tab], self.snapshot))

    def _draw_diff(self) -> None:
        """Show the diff instead of the items, if there is one and its tab is shown."""
        patch = self.snapshot.patch if self.snapshot is not None and self.tab == "diff" else None
        is_shown = patch is not None and bool(patch.text)
        pane = self.diff_pane
        if is_shown and patch is not self._patch:
            self._patch = patch
            pane.source = None if self.snapshot is None else source_of(self.snapshot.job)
            pane.load(patch.text)  # type: ignore[union-attr]
        if pane.display is not is_shown:
            has_focus = self.focused is self.focus_target
            pane.display = is_shown
            self.item_list.display = not is_shown
            if has_focus or self.focused is None:
                self.focus_target.focus()

    def _items(
        self, tab: JobTab, snapshot: JobSnapshot | None, width: int
    ) -> list[row_layout.Item]:
        if snapshot is None:
            return [row_layout.note("loading …", width)]
        items = list(tab.items(snapshot, width, self.refresher.now))
        if not self.search_text or self.searches_log or not any(item.key for item in items):
            return items
        matches = [item for item in items if row_layout.contains_text(item, self.search_text)]
        empty = f"No matches for {one_line(self.search_text)}. Esc clears the search"
        return matches or [row_layout.note(empty, width)]

    def _show_title(self) -> None:
        job = None if self.snapshot is None else self.snapshot.job
        title = [job_name(self.number), self.tab]
        if self.tab == "log" and self.loader.run is not None:
            title[-1] = f"log of {run_text(self.loader.run)}"
        if JOB_TABS[self.tab].follows and self.snapshot is not None and not self.snapshot.over:
            title.append("following" if self.item_list.following else "f: follow")
        if self.tab == "diff" and self.snapshot is not None:
            title += filter(None, [truncation(self.snapshot)])
        if self.search_text:
            title.append(f"/{self.search_text}")
        if self._match is not None:
            title.append(self._match)
        if job is not None and self.size.height < CARD_ROWS:
            title.append(job.title)
        self.query_one(Title).show(*title, read_only=self.read_only)


def _tab_label(tab: JobTab, snapshot: JobSnapshot | None) -> Tab:
    if snapshot is None:
        return Tab(tab.name, tab.short or tab.name, tab.number_key)
    count = tab.count(snapshot)
    return Tab(
        tab.name,
        tab.short or tab.name,
        tab.number_key,
        empty=not count,
        count=count if tab.shows_count else None,
        needs_attention=tab.needs_attention(snapshot),
    )
