"""The list of draftsman's own event kinds has each kind that the code writes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from draftsman import resources
from draftsman.database.migration_files import available
from draftsman.jobs.event_kinds import EVENTS
from draftsman.jobs.job import TRANSITIONS

CORE: Final = Path(resources.__file__).parent
IN_SQL: Final = re.compile(
    r"'([a-z]+_[a-z_]+|redelivered)'(?: END)?,\s*"
    r"(?:'system'|%\((?:actor|by)\)s|who|[gs]\.status|e\.actor|actor,)"
)
"""A kind, before the actor of its event (of a new job: its status)."""
IN_FUNCTIONS: Final = re.compile(
    r"(?:VALUES \(|SELECT )(?:\w+\.)?job, '([a-z]+_[a-z_]+|redelivered)'"
)
"""A kind, after the job of its event."""
CASES: Final = re.compile(r"(?:THEN|ELSE) '((?:delivery|attachment)_[a-z_]+)'")
IN_PYTHON: Final = re.compile(
    r"(?:\badd_event\(\s*conn,[^\"]*|_record_change\([^\"]*|\.event\(\s*|\bkind=)\"([a-z]+_[a-z_]+)\""
)


def test_every_kind_that_the_code_writes_is_reserved() -> None:
    statements = [item.sql for item in available()]
    statements += [path.read_text() for path in CORE.rglob("*.sql")]
    kinds = {
        kind
        for text in statements
        for pattern in (IN_SQL, IN_FUNCTIONS, CASES)
        for kind in pattern.findall(text)
    }
    for path in CORE.rglob("*.py"):
        kinds |= {*IN_PYTHON.findall(path.read_text())}
    assert {"job_created", "question_escalated", "delivery_dead_lettered", "token_minted"} <= kinds
    assert {"branch_published", "vote_received", "repo_resolved", "answer_received"} <= kinds
    assert kinds <= EVENTS.keys()


def test_every_transition_has_an_event() -> None:
    assert {*TRANSITIONS.values()} <= EVENTS.keys()
