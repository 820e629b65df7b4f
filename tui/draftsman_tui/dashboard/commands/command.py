"""Dashboard command, and the sets of views that commands apply to."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

from draftsman.domain.people.policy import Verb
from draftsman_tui.dashboard.views import VIEWS

Run = Callable[[Any, str], Awaitable[None]]
"""Takes the screen that the command applies to, and the arguments."""
TABLES: Final = frozenset(VIEWS)
JOB: Final = frozenset({"job"})
"""The screen of one job."""
JOBS: Final = frozenset({"jobs", "dead", "inbox", "runs", "deliveries", "events"}) | JOB
"""Views whose rows refer to a job, and the job screen."""
QUESTION_VIEWS: Final = frozenset({"jobs", "inbox"}) | JOB
"""Views whose selection may have an open question."""
REPOS: Final = frozenset({"repos"})


@dataclass(frozen=True, slots=True)
class DashboardCommand:
    """A command. `on` has the names of the views it applies to; None: all."""

    name: str
    help: str
    run: Run
    keys: str = ""
    group: str = "This table"
    on: frozenset[str] | None = None
    needs: Verb | None = None
    """The permission that the service checks; a command with one writes."""
    writes: bool = False
    """Whether it writes without a permission check."""
    takes: str = ""
    """Its arguments."""
    footer: bool | frozenset[str] = False
    """Whether, or in which views, the key bar shows its key."""

    def is_shown(self, view_name: str) -> bool:
        """Return whether the key bar shows it in a view."""
        return self.footer if isinstance(self.footer, bool) else view_name in self.footer
