"""Tabs of the job screen, in the order of their keys."""

from __future__ import annotations

from typing import Final

from draftsman_tui.dashboard import modules
from draftsman_tui.dashboard.jobs.details.tab import DECLARED, JobTab
from draftsman_tui.dashboard.tables.resource import key_order

modules.import_all("tab")
JOB_TABS: Final[dict[str, JobTab]] = {
    tab.name: tab for tab in sorted(DECLARED, key=lambda tab: key_order(tab.number_key, tab.name))
}
