"""Comments on changed files and lines, as people write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from draftsman.agent_runs.changes.comment_parsing import read_comments, split_comments
from draftsman.errors import UsageError
from draftsman.questions.review_comment import ReviewComment
from tests.support.cases import cases

PATCH = """\
diff --git a/a.py b/a.py
index 1..2 100644
--- a/a.py
+++ b/a.py
@@ -1,3 +1,4 @@
 one
-two
+2
+diff --git a/fake.py b/fake.py
 three
@@ -90,2 +91,2 @@ def f():
 x
-y
+z
diff --git a/a.py.bak b/a.py.bak
deleted file mode 100644
--- a/a.py.bak
+++ /dev/null
@@ -1 +0,0 @@
-one
diff --git a/old.txt b/new name=x:2.txt
similarity index 50%
rename from old.txt
rename to new name=x:2.txt
--- a/old.txt
+++ b/new name=x:2.txt
@@ -1 +1 @@
-a
+b
diff --git a/logo.png b/logo.png
index 1..2 100644
GIT binary patch
literal 3
KcmZQzWdH*J0s#O3

literal 0
HcmV?d00001

diff --git "a/m\\303\\274nze.txt" "b/m\\303\\274nze.txt"
new file mode 100644
--- /dev/null
+++ "b/m\\303\\274nze.txt"
@@ -0,0 +1 @@
+x
"""
SHOWN = {
    "a.py": {1, 2, 3, 4, 91, 92},
    "a.py.bak": set[int](),
    "new name=x:2.txt": {1},
    "logo.png": set[int](),
    "münze.txt": {1},
}


@cases(
    ("line", "comment"),
    [
        ("a.py:2=why", ReviewComment("a.py", "why", 2)),
        ("a.py:2 why", ReviewComment("a.py", "why", 2)),
        ("a.py:2: why", ReviewComment("a.py", "why", 2)),
        ("a.py:92 = a = b: c", ReviewComment("a.py", "a = b: c", 92)),
        ("a.py=why", ReviewComment("a.py", "why")),
        ("a.py: why", ReviewComment("a.py", "why")),
        ("a.py.bak=keep it", ReviewComment("a.py.bak", "keep it")),
        ("new name=x:2.txt=name", ReviewComment("new name=x:2.txt", "name")),
        ("new name=x:2.txt:1=name", ReviewComment("new name=x:2.txt", "name", 1)),
        ("logo.png=smaller", ReviewComment("logo.png", "smaller")),
        ("münze.txt:1 ja", ReviewComment("münze.txt", "ja", 1)),
    ],
)
def test_a_line_is_a_comment(line: str, comment: ReviewComment) -> None:
    assert read_comments([f"  {line} "], PATCH) == [comment]
    text, comments = split_comments(f"first\n{line}\n\nlast\n", PATCH)
    assert (text, comments) == ("first\n\nlast", [comment])


@cases(
    "line",
    [
        "a.py",
        "a.py:",
        "a.py:2",
        "a.py=",
        "a.py is fine",
        "a.py:x=y",
        "b/a.py=x",
        "fake.py=x",
        "",
        "x",
    ],
)
def test_another_line_is_text_and_no_comment(line: str) -> None:
    assert split_comments(line, PATCH) == (line, [])
    with pytest.raises(UsageError, match="is not a comment on a changed file; write FILE:LINE="):
        read_comments([line], PATCH)


@cases(
    ("line", "problem"),
    [
        (
            "a.py:5=x",
            "the diff has no line 5 of a.py; its lines of the new version: 1-4, 91-92",
        ),
        ("a.py.bak:1=x", "the diff has no line 1 of a.py.bak; comment on the file: a.py.bak=TEXT"),
        ("logo.png:0 x", "the diff has no line 0 of logo.png; comment on the file: logo.png=TEXT"),
        (
            "old.txt=x",
            (
                "'old.txt=x' is not a comment on a changed file; write FILE:LINE=TEXT or"
                " FILE=TEXT, with one of the files of the diff: a.py, a.py.bak,"
                " new name=x:2.txt, logo.png, münze.txt"
            ),
        ),
    ],
)
def test_a_refusal_says_what_is_allowed(line: str, problem: str) -> None:
    with pytest.raises(UsageError) as refused:
        read_comments([line], PATCH)
    assert str(refused.value) == problem


@given(st.sampled_from([*SHOWN]), st.integers(0, 10**9), st.text(min_size=1))
def test_exactly_the_lines_that_the_diff_shows_take_comments(
    path: str, number: int, said: str
) -> None:
    said = " ".join(said.split()) or "x"
    text = f"{path}:{number}={said}"
    if number in SHOWN[path]:
        assert read_comments([text], PATCH) == [ReviewComment(path, said, number)]
    elif number < 10**9:
        with pytest.raises(UsageError, match=f"no line {number} of"):
            read_comments([text], PATCH)


@given(st.text(), st.text())
def test_any_text_and_any_patch_are_read(text: str, patch: str) -> None:
    for shown in (PATCH, patch):
        try:
            kept, comments = split_comments(text, shown)
        except UsageError:
            continue
        assert kept or comments or not text.strip()
