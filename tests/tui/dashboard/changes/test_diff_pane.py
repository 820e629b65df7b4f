"""The diff of an approval and of a job: keys, comments and a large patch."""

from __future__ import annotations

from draftsman.jobs.job import Source
from draftsman.runtime import Runtime
from draftsman_testing.factories import GATE, Factory
from draftsman_testing.people import People
from draftsman_tui.dashboard.changes.diff_pane import LARGE, DiffPane
from tests.tui.dashboard.changes.test_patch import TEXT
from tests.tui.dashboard.pilot import DashboardPilot, open_dashboard

HUNK = "@@ -0,0 +1,1000 @@\n" + "+one more line of a large file\n" * 1000
BIG = "".join(
    f"diff --git a/f{nth}.py b/f{nth}.py\n--- /dev/null\n+++ b/f{nth}.py\n{HUNK}"
    for nth in range(40)
)


def _row(seen: DashboardPilot) -> str:
    """The text of the row under the cursor."""
    view = seen.app.screen.query_one(DiffPane).view
    return view._text(view.selected)


async def test_comments_on_the_diff_of_an_approval_are_recorded_with_the_reason(
    make: Factory, rt: Runtime, people: People
) -> None:
    work = await make.running()
    await rt.changes.store(work.lease, TEXT.encode())
    await rt.asking.ask(work.lease, GATE)
    async with open_dashboard(
        rt, people.on(Source.TUI, "carol"), view="inbox", size=(140, 40)
    ) as seen:
        await seen.rows("D-1/1")
        await seen.press("a")
        await seen.see("▾ src/app/main.py  +2 -2", "11    - --- a dash of SQL", "    new.sql +1 -0")
        await seen.press("right_curly_bracket", "right_curly_bracket", "j")
        assert _row(seen) == "40    - gone"
        await seen.press("m")
        await seen.type("keep it")
        await seen.press("enter")
        await seen.see("┃ keep it")
        await seen.press("m", "escape")  # leaves the comment, not the dialog
        await seen.press("right_square_bracket", "v")
        await seen.see("▸ src/app/new.sql  +1 -0  new  ✓ accepted", "    ✓ new.sql +1 -0")
        await seen.press("slash")
        await seen.type("gone")
        await seen.press("enter")
        assert _row(seen) == "40    - gone", "after the last line it goes on at the first"
        await seen.press("slash", "n", "o", "n", "e", "enter")
        await seen.wait_for_toast("no match of 'none'")
        assert _row(seen) == "40    - gone"
        await seen.press("slash", "escape")  # leaves the search, not the dialog
        await seen.press("minus")
        assert "gone" not in seen.text
        await seen.press("r")
        await seen.type("not yet")
        await seen.press("enter", "n")
        await seen.dialog("MainScreen")
    reason = "not yet\nsrc/app/main.py:40: keep it\naccepted: src/app/new.sql"
    resolution = (await rt.questions.get(1, 1)).resolution or {}
    assert (resolution["outcome"], resolution["reason"]) == ("denied", reason)


async def test_changes_are_requested_with_the_comments_on_the_diff(
    make: Factory, rt: Runtime, people: People
) -> None:
    """A removed line is none of the new version: its comment is one on the file."""
    await make.reviewed(TEXT.encode())
    async with open_dashboard(
        rt, people.on(Source.TUI, "carol"), view="inbox", size=(140, 40)
    ) as seen:
        await seen.rows("D-1/1")
        await seen.press("W")
        await seen.see("w: request changes", "or what to change")
        assert "y: approve" not in seen.text
        await seen.press("y", "n")
        await seen.press("w")
        await seen.see("enter: done, then y, w or n")
        await seen.type("not yet")
        await seen.press("enter")
        await seen.press("right_curly_bracket", "right_curly_bracket", "j", "m")
        await seen.type("keep it")
        await seen.press("enter", "right_square_bracket", "j", "j", "m")
        await seen.type("which dialect?")
        await seen.press("enter", "w")
        await seen.dialog("MainScreen")
    question = await rt.questions.get(1, 1)
    assert (question.resolution or {})["reason"] == "not yet"
    assert list(map(str, question.comments)) == [
        "src/app/main.py: removed line 40: keep it",
        "src/app/new.sql:1: which dialect?",
    ]


async def test_changes_are_requested_of_several_approvals_only_if_all_take_them(
    make: Factory, rt: Runtime, people: People
) -> None:
    await make.reviewed()
    await make.reviewed()
    await make.asked(GATE)
    carol = people.on(Source.TUI, "carol")
    async with open_dashboard(rt, carol, view="inbox", size=(140, 40)) as seen:
        await seen.rows("D-1/1", "D-2/1", "D-3/1")
        await seen.press("G", "W")
        await seen.wait_for_toast("D-3/1 takes no requests for changes")
        await seen.press("g", "space", "space", "a")
        await seen.see("1  approve all 2", "2  request changes of all 2", "3  deny all 2")
        await seen.press("2")
        await seen.see("What should change in 2 requests?")
        await seen.type("add a test")
        await seen.press("enter")
        await seen.see("Request changes of 2 requests?", "y: yes")
        await seen.press("y")
        await seen.wait_for_toast("changes requested")
    outcomes = [(await rt.questions.get(number, 1)).outcome for number in (1, 2, 3)]
    assert outcomes == ["changes_requested", "changes_requested", "open"]


async def test_an_approval_that_is_asked_again_repeats_the_requested_changes(
    make: Factory, rt: Runtime, people: People
) -> None:
    await make.overtaken(people.carol)
    carol = people.on(Source.TUI, "carol")
    async with open_dashboard(rt, carol, view="inbox", size=(140, 40)) as seen:
        await seen.rows("D-1/2")
        await seen.press("a")
        await seen.see("changes requested by carol in D-1/1:", "use the v2 API", "a.py:3: handle")


async def test_a_low_screen_gives_its_rows_to_the_diff(
    make: Factory, rt: Runtime, people: People
) -> None:
    work = await make.running()
    await rt.changes.store(work.lease, BIG[:9000].encode())
    await rt.asking.ask(work.lease, GATE.model_copy(update={"context": "Every line counts."}))
    async with open_dashboard(
        rt, people.on(Source.TUI, "carol"), view="inbox", size=(80, 24)
    ) as seen:
        await seen.rows("D-1/1")
        await seen.press("A")
        await seen.see("1 of 1 for you · D-1/1", "+ one more line", "esc: end review")
        shown = [line for line in seen.lines if "one more line" in line]
        assert len(shown) >= 11
        assert "Reason" not in seen.text
        await seen.press("r")
        await seen.see("Reason (optional, recorded)", "enter: done, then y or n")
        await seen.type("read")
        await seen.press("enter", "y")
        await seen.dialog("MainScreen")
    assert (await rt.questions.get(1, 1)).resolution == {
        "by": ["carol"],
        "via": "person",
        "outcome": "approved",
        "reason": "read",
    }


async def test_the_tab_of_a_job_shows_a_large_patch(
    make: Factory, rt: Runtime, people: People
) -> None:
    assert len(BIG) > LARGE
    work = await make.running()
    await rt.changes.store(work.lease, BIG.encode())
    async with open_dashboard(rt, people.on(Source.TUI, "carol"), size=(120, 36)) as seen:
        await seen.job("D-1", "4")
        await seen.see("▾ f0.py  +1000 -0", "1 + one more line")
        await seen.press("N", "n", "G")
        assert _row(seen).split() == [
            "1000",
            "+",
            "one",
            "more",
            "line",
            "of",
            "a",
            "large",
            "file",
        ]
        await seen.press("slash")
        await seen.type("F7")
        await seen.press("enter")
        await seen.see("no match")  # the names of the files are not lines
        await seen.press("escape", "left_square_bracket", "enter")
        await seen.see("▸ f39.py")
        await seen.press("right")
        await seen.until(lambda: not seen.app.screen.query_one(DiffPane).display)
