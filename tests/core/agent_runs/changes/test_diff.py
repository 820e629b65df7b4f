"""The statistics of a diff are those that git counts."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from draftsman.agent_runs.changes.diff import is_diff
from draftsman.agent_runs.changes.shown_diff import diffstat
from tests.support.cases import cases

ONE = """diff --git a/x.py b/x.py
--- a/x.py
+++ b/x.py
@@ -1,2 +1,3 @@
 one
-two
+--- two
++++ three
"""


def test_a_hunk_line_that_looks_like_a_header_is_a_line() -> None:
    assert diffstat(ONE) == "x.py | +2 -1\n1 file changed, +2 -1"


def test_a_diff_without_git_headers_is_counted_too() -> None:
    plain = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n--- a/y\n+++ b/y\n@@ -0,0 +1 @@\n+c\n"
    assert is_diff(plain)
    assert diffstat(plain) == "x | +1 -1\ny | +1 -0\n2 files changed, +2 -1"


def test_counts_are_those_of_git(tmp_path: Path) -> None:
    git = ["git", "-C", str(tmp_path), "-c", "user.name=t", "-c", "user.email=t@example.org"]
    subprocess.run([*git, "init", "-q"], check=True)
    for name in ("kept", "gone", "moved"):
        (tmp_path / name).write_text("".join(f"{name} {n}\n" for n in range(9)))
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "-qm", "first"], check=True)
    (tmp_path / "kept").write_text("new\n" * 3)
    (tmp_path / "gone").unlink()
    (tmp_path / "moved").rename(tmp_path / "there")
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "new file").write_text("x\ny")
    subprocess.run([*git, "add", "-A"], check=True)
    show = [*git, "diff", "--cached"]
    diff = subprocess.run(show, check=True, capture_output=True, text=True).stdout
    counted = subprocess.run([*show, "--numstat"], check=True, capture_output=True, text=True)
    expected = [line.split("\t") for line in counted.stdout.splitlines()]
    lines = diffstat(diff).splitlines()
    assert len(lines) == len(expected) + 1
    for line, (plus, minus, _) in zip(lines, expected, strict=False):
        assert re.search(rf"\| \+{plus} -{minus}(,|$)", line), lines


@cases("text", ["", "--- a\n", "no diff\n+ at all"])
def test_text_without_a_diff_has_no_counts(text: str) -> None:
    assert not is_diff(text)


@given(st.text("+-@ a/b\n0123,diffgit", max_size=300))
def test_any_text_is_parsed_without_an_error(text: str) -> None:
    assert diffstat(text).endswith(("changed, +0 -0",)) or "changed, +" in diffstat(text)
