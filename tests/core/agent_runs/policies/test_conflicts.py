"""Conflicts with other branches in words, for questions and results."""

from __future__ import annotations

from draftsman.agent_runs.policies.conflicts import MAX_PATHS, BranchConflict, conflict_text
from draftsman.deliveries.result_text import change_summary, unrendered_fields

PATHS = tuple(f"f{number}" for number in range(MAX_PATHS + 9))
CONFLICTS = [
    BranchConflict("draftsman/D-7", "Fix rounding", PATHS, "D-7"),
    BranchConflict("main", "the base, which has moved", ("a.txt",)),
    BranchConflict("draftsman/D-7/x", "", ()),
]


def test_a_conflict_is_named_by_job_title_and_files() -> None:
    assert conflict_text(CONFLICTS).splitlines() == [
        f"Conflicts with D-7 (Fix rounding): f0, f1, f2, f3, f4 and {MAX_PATHS + 4} more",
        "Conflicts with main (the base, which has moved): a.txt",
        "Conflicts with draftsman/D-7/x: folders",
    ]
    assert conflict_text([]) == ""


def test_the_summary_of_a_result_names_its_conflicts() -> None:
    result = {"branch": "draftsman/D-9", "conflicts": [item.as_json() for item in CONFLICTS]}
    assert change_summary(result) == (
        f"branch draftsman/D-9, conflicts with D-7 (f0, f1, f2 and {MAX_PATHS - 3} more),"
        " conflicts with main (a.txt), conflicts with draftsman/D-7/x (folders)"
    )
    assert unrendered_fields(result) == {}
    names = [f"D-{number}" for number in (9, 8, 7, 6, 5)]
    same = [BranchConflict(f"draftsman/{name}", "", ("w.txt",), name) for name in names]
    result = {"conflicts": [item.as_json() for item in same]}
    assert change_summary(result) == "conflicts with D-9, D-8, D-7 and 2 more (w.txt)"
    unknown = {"branch": "draftsman/D-9", "conflicts_unknown": "no route"}
    assert change_summary(unknown) == "branch draftsman/D-9, conflicts unknown: no route"
