"""Patches as files, hunks, numbered lines, rows and comments."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from draftsman_tui.dashboard.changes.diff_pane import tree
from draftsman_tui.dashboard.changes.diff_view import colored, marked
from draftsman_tui.dashboard.changes.patch import (
    Patch,
    PatchRow,
    PatchRows,
    SideRows,
    find_line,
    next_hunk,
    review_comments,
    review_text,
)
from draftsman_tui.dashboard.changes.word_diff import changed_words
from tests.support.cases import cases

TEXT = """\
diff --git a/src/app/main.py b/src/app/main.py
index 111..222 100644
--- a/src/app/main.py
+++ b/src/app/main.py
@@ -10,4 +10,5 @@ def main():
 first
---- a dash of SQL
+++++ pluses
+added

 last
@@ -40,2 +41 @@
-gone
 kept
\\ No newline at end of file
diff --git a/src/app/new.sql b/src/app/new.sql
new file mode 100644
--- /dev/null
+++ b/src/app/new.sql
@@ -0,0 +1 @@
+SELECT 1
diff --git a/logo.png b/logo.png
index 1..2
Binary files a/logo.png and b/logo.png differ
diff --git a/old.txt b/new.txt
rename from old.txt
rename to new.txt
"""


def test_a_patch_has_files_with_their_counts_and_numbered_lines() -> None:
    patch = Patch(TEXT)
    assert [(file.path, file.added, file.removed, file.notes) for file in patch.files] == [
        ("src/app/main.py", 2, 2, []),
        ("src/app/new.sql", 1, 0, ["new"]),
        ("logo.png", 0, 0, ["binary: its content is not shown"]),
        ("new.txt", 0, 0, ["renamed from old.txt"]),
    ]
    numbers = {line: (patch.old[nth], patch.new[nth]) for nth, line in enumerate(patch.lines)}
    assert numbers[" first"] == (10, 10)
    assert numbers["---- a dash of SQL"] == (11, 0)
    assert numbers["+++++ pluses"] == (0, 11)
    assert numbers[" last"] == (13, 14)
    assert numbers["-gone"] == (40, 0)
    assert numbers[" kept"] == (41, 41)
    assert numbers["\\ No newline at end of file"] == (0, 0)
    assert Patch("").files == []
    assert [file.path for file in Patch("--- a\n+++ b\n@@ -1 +1 @@\n-x\n+y\n").files] == ["b"]
    assert [file.path for file in Patch("@@ -1 +1 @@\n-x\n+y\n").files] == ["changes"]


def test_rows_have_folded_files_and_comments_below_their_lines() -> None:
    patch = Patch(TEXT)
    added = patch.lines.index("+added")
    query = patch.lines.index("+SELECT 1")
    rows = PatchRows(patch, frozenset({1}), [query, added])
    shown = [rows.at(nth) for nth in range(len(rows))]
    assert [row.file for row in shown if row.line is None] == [0, 1, 2, 3]
    at = shown.index(PatchRow(0, added, note=True))
    assert shown[at - 1] == PatchRow(0, added)
    assert shown[at + 1] == PatchRow(0, added + 1)
    for nth, row in enumerate(shown):
        if row.line is not None and not row.note:
            assert rows.row_of(row.line) == nth
    assert rows.row_of(query) == rows.head_of(1)  # of a folded file
    unfolded = PatchRows(patch, frozenset(), [query, added])
    assert len(unfolded) == len(rows) + 3


def test_hunks_and_searches_go_over_all_files() -> None:
    patch = Patch(TEXT)
    hunks = [nth for nth, line in enumerate(patch.lines) if line.startswith("@@")]
    forward: list[int] = []
    at = PatchRow(0)
    while (line := next_hunk(patch, at, 1)) is not None:
        forward.append(line)
        at = PatchRow(patch.file_of(line), line)
    assert forward == hunks
    assert next_hunk(patch, PatchRow(1, hunks[2]), -1) == hunks[1]
    assert next_hunk(patch, PatchRow(1), -1) == hunks[1]
    assert next_hunk(patch, PatchRow(0), -1) is None
    gone = patch.lines.index("-gone")
    kept = patch.lines.index(" kept")
    assert find_line(patch, "GONE", 0, 1) == gone
    assert find_line(patch, "e", kept, -1) == kept
    assert find_line(patch, "diff --git", 0, 1) is None


def test_comments_and_accepted_files_are_the_text_of_an_answer() -> None:
    patch = Patch(TEXT)
    comments = {
        patch.lines.index("+SELECT 1"): "which dialect?",
        patch.lines.index("-gone"): "keep it",
        -1 - 2: "smaller, please",
    }
    assert review_text(patch, comments, [0], "not yet") == (
        "not yet\nsrc/app/main.py:40: keep it\nsrc/app/new.sql:1: which dialect?\n"
        "logo.png: smaller, please\naccepted: src/app/main.py"
    )
    assert review_text(patch, {}, [0]) == ""
    assert review_comments(patch, comments) == [
        "src/app/main.py=removed line 40: keep it",
        "src/app/new.sql:1=which dialect?",
        "logo.png=smaller, please",
    ]


def test_the_tree_has_folders_counts_and_accepted_files() -> None:
    patch = Patch(TEXT)
    assert tree(patch.files, {1}) == [
        ("src/", None),
        ("  app/", None),
        ("    main.py +2 -2", 0),
        ("    ✓ new.sql +1 -0", 1),
        ("logo.png +0 -0", 2),
        ("new.txt +0 -0", 3),
    ]
    many = tree(patch.files * 200)
    assert many[-1] == ("… and 300 more", None)


def test_code_is_colored_by_the_name_of_its_file() -> None:
    roles = dict(colored("src/main.py", 'def f(): return "x", 12  # why'))
    assert (roles["def"], roles["f"], roles["12"], roles["# why"]) == (
        *("keyword", "name", "number", "comment"),
    )
    assert colored("notes.unknown", "def f()") == (("def f()", ""),)
    assert "".join(part for part, _ in colored("a.py", "  x = '")) == "  x = '"


def test_a_removed_line_is_beside_the_added_line_in_its_place() -> None:
    lines = ["@@ -1,5 +1,5 @@", "-a", "-b", "+A", " same", "+only", "-x", "-y", "+X", "+Y"]
    patch = Patch("\n".join(lines))
    assert {nth: patch.partner(nth) for nth in range(10) if patch.partner(nth) is not None} == {
        1: 3,
        3: 1,
        6: 8,
        8: 6,
        7: 9,
        9: 7,
    }
    rows = SideRows(patch, comments=[3])
    shown = [(row.replaced, row.line, row.note) for row in map(rows.at, range(len(rows)))]
    assert shown == [
        (None, None, False),
        (None, 0, False),
        (None, 2, False),
        (1, 3, False),
        (None, 3, True),
        (None, 4, False),
        (None, 5, False),
        (6, 8, False),
        (7, 9, False),
    ]
    assert [rows.row_of(line) for line in (1, 3, 7)] == [3, 3, 8]
    folded = SideRows(patch, frozenset({0}))
    assert (len(folded), folded.row_of(5), folded.head_of(0)) == (1, 0, 0)


@given(st.lists(st.sampled_from(["-a", "+a", " a", "+b b", "-b c"]), max_size=30))
def test_each_line_of_a_patch_is_in_a_row_once(lines: list[str]) -> None:
    old = sum(line[0] != "+" for line in lines)
    new = sum(line[0] != "-" for line in lines)
    patch = Patch("\n".join([f"@@ -1,{old} +1,{new} @@", *lines]))
    rows = [SideRows(patch).at(row) for row in range(len(SideRows(patch)))]
    shown = [index for row in rows for index in (row.replaced, row.line) if index is not None]
    assert sorted(shown) == [*range(len(patch.lines))]
    for index in shown:
        if (other := patch.partner(index)) is not None:
            assert patch.partner(other) == index
            assert {patch.lines[index][0], patch.lines[other][0]} == {"-", "+"}


@cases(
    ("old", "new", "words"),
    [
        ("total = 1 + tax", "total = 2 + tax", (["1"], ["2"])),
        ("count(items)", "count(items, tax)", ([], [", tax"])),
        ("same", "same", ([], [])),
        ("nothing alike", "0123456789", ([], [])),
        ("x" * 501, "y" * 501, ([], [])),
    ],
)
def test_words_that_changed_are_marked(old: str, new: str, words: tuple[list[str], ...]) -> None:
    spans = changed_words(old, new)
    texts = [[line[a:b] for a, b in part] for line, part in zip((old, new), spans, strict=True)]
    joined = ["".join(part) for part in texts]
    assert joined == ["".join(part) for part in words]


def test_a_part_of_a_line_is_split_where_words_changed() -> None:
    parts = [("total", "name"), (" = 1", "")]
    assert marked(parts, [(3, 6)]) == [
        ("tot", "name"),
        ("al", "changed name"),
        (" ", "changed "),
        ("= 1", ""),
    ]
    assert marked(parts, []) == parts
