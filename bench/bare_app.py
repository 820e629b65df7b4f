"""A Textual application with one table and nothing else, which a dashboard is compared with."""

from __future__ import annotations

from typing import ClassVar

from textual.app import App, ComposeResult
from textual.binding import BindingType
from textual.widgets import DataTable, Static

ROWS = 200
COLUMNS = 8


class BareApp(App[None]):
    """Shows the number of the row under the cursor below its table."""

    BINDINGS: ClassVar[list[BindingType]] = [("q", "quit", "Quit")]

    def compose(self) -> ComposeResult:
        yield DataTable(cursor_type="row")
        yield Static("row 0", id="line")

    def on_mount(self) -> None:
        table = self.query_one(DataTable)
        table.styles.height = "1fr"
        table.add_columns(*(f"HEAD {nth}" for nth in range(COLUMNS)))
        table.add_rows([f"cell {row} {nth}" for nth in range(COLUMNS)] for row in range(ROWS))

    def on_data_table_row_highlighted(self, event: DataTable.RowHighlighted) -> None:
        self.query_one("#line", Static).update(f"row {event.cursor_row}")


if __name__ == "__main__":
    BareApp().run()
