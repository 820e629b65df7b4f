"""The difference between two patches of the same base, compared with git."""

from __future__ import annotations

import random
import re
import subprocess
from pathlib import Path
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from draftsman.agent_runs.changes.interdiff import interdiff
from draftsman.agent_runs.changes.shown_diff import diffstat
from draftsman.agent_runs.clones.git import git_environment
from tests.support.cases import cases

BASE: Final = {f"{n}.txt": [f"line {n}.{i}\n" for i in range(40)] for n in range(6)}
Tree = dict[str, list[str]]


def git(folder: Path, *arguments: str, data: str = "") -> str:
    done = subprocess.run(
        ["git", *arguments],
        cwd=folder,
        env=git_environment(),
        input=data.encode("utf-8", "surrogateescape"),
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, (done.stderr, data)
    return done.stdout.decode("utf-8", "surrogateescape")


def commit(folder: Path, tree: Tree) -> str:
    """Return the id of a tree with these files."""
    for path in folder.glob("*.txt"):
        path.unlink()
    for name, lines in tree.items():
        (folder / name).write_bytes("".join(lines).encode("utf-8", "surrogateescape"))
    git(folder, "add", "-A")
    return git(folder, "write-tree").strip()


def changed(base: Tree, rng: random.Random) -> Tree:
    """Return a tree with random changes."""
    tree = {name: list(lines) for name, lines in base.items()}
    for name in rng.sample(sorted(base), 3):
        for _ in range(rng.randint(1, 4)):
            lines = tree[name]
            at = rng.randrange(len(lines) + 1)
            lines[at : at + rng.randint(0, 3)] = [
                f"new {rng.randint(0, 3)}\n" for _ in range(rng.randint(0, 3))
            ]
    if rng.random() < 0.5:
        del tree[rng.choice(sorted(tree))]
    if rng.random() < 0.7:
        tree["new.txt"] = [f"{rng.randint(0, 2)}\x0c\r\n" for _ in range(rng.randint(1, 5))]
    last = rng.choice(sorted(tree))
    if tree[last] and rng.random() < 0.5:
        tree[last][-1] = tree[last][-1].removesuffix("\n") + "\udcff"
    return tree


def check_line_numbers(patch: str, tree: Tree) -> None:
    """Require each hunk at its exact line of the first tree; git would search for it nearby."""
    for file in patch.split("diff --git a/")[1:]:
        lines = tree.get(file.partition(" ")[0], [])
        for hunk in re.split(r"^(?=@@ )", file, flags=re.M)[1:]:
            head, _, body = hunk.partition("\n")
            start, count = map(int, head[4:].partition(" ")[0].split(","))
            before = [line[1:] for line in body.split("\n") if line[:1] in (" ", "-")]
            there = lines[start - 1 : start - 1 + count] if count else []
            assert before == [line.removesuffix("\n") for line in there], hunk


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("interdiff")
    git(folder, "init", "-q", ".")
    return folder


def test_it_leads_from_one_tree_to_the_other_as_git_applies_it(repository: Path) -> None:
    rng = random.Random(7)
    base = commit(repository, BASE)
    for _ in range(10):
        first_tree = changed(BASE, rng)
        first = commit(repository, first_tree)
        second = commit(repository, changed(rng.choice([BASE, first_tree]), rng))
        patches = [
            git(repository, "diff", "--binary", "--full-index", "--no-renames", base, tree)
            for tree in (first, second)
        ]
        patch = interdiff(*patches)
        check_line_numbers(patch, first_tree)
        git(repository, "read-tree", first)
        if patch:
            git(repository, "apply", "--cached", "--unidiff-zero", "-", data=patch)
        assert git(repository, "write-tree").strip() == second, patch


PARTS: Final = st.lists(
    st.sampled_from(
        [
            *("diff --git a/a b/a", "diff --git a/b b/b", "--- a/a", "+++ b/a", "index 1..2"),
            *("@@ -1,2 +1,3 @@", "@@ -5 +6,0 @@", "@@ -0,0 +1 @@", "@@ -2,9 +1 @@", "@@ x"),
            *(" one", "-one", "+one", " ", "", "+", "-two", "\\ No newline at end of file"),
            *("rename to b", "rename from c", "deleted file mode 1", "new file mode 1"),
        ]
    ),
    max_size=25,
).map("\n".join)


@given(PARTS, PARTS)
def test_no_text_raises_an_error(before: str, after: str) -> None:
    assert isinstance(interdiff(before, after), str)


FIRST = """diff --git a/a b/a
index 1..2 100644
--- a/a
+++ b/a
@@ -1,2 +1,3 @@
 one
+two
 three
"""


def test_unchanged_files_are_left_out_and_added_and_reverted_files_are_shown() -> None:
    assert interdiff(FIRST, FIRST) == ""
    assert interdiff("", FIRST) == FIRST
    assert diffstat(interdiff(FIRST, "")) == "a | +0 -1\n1 file changed, +0 -1"
    more = FIRST.replace("+two\n", "+two\n+four\n").replace("+1,3", "+1,4").replace("..2", "..3")
    assert interdiff(FIRST, more).splitlines()[3:] == [
        "@@ -1,3 +1,4 @@", " one", " two", "+four", " three",
    ]  # fmt: skip


@cases("kind", ["GIT binary patch", "old mode 100644", "rename from b"])
def test_a_file_without_lines_to_compare_is_shown_in_full_with_a_note(kind: str) -> None:
    opaque = f"diff --git a/a b/a\n{kind}\nsomething\n"
    shown = interdiff(FIRST, opaque)
    assert shown.startswith("diff --git a/a b/a\n# compared with the base")
    assert shown.endswith(f"{kind}\nsomething\n")
    assert interdiff(opaque, opaque) == ""


def test_patches_of_different_bases_differ_in_the_files_whose_changes_differ() -> None:
    def patch(name: str, blob: str, at: int, line: str) -> str:
        head = f"diff --git a/{name} b/{name}\nindex {blob}..9 100644\n--- a/{name}\n+++ b/{name}\n"
        return f"{head}@@ -{at} +{at} @@\n-old\n+{line}\n"

    before = patch("a", "1", 3, "x") + patch("b", "2", 5, "y") + patch("gone", "3", 1, "z")
    shifted = patch("a", "7", 30, "x")
    edited = patch("b", "8", 50, "other")
    note = "# compared with the base, not with the approval\n"
    first, rest = edited.split("\n", 1)
    assert interdiff(before, shifted + edited + patch("new", "4", 1, "n"), same_base=False) == (
        f"{first}\n{note}{rest}diff --git a/gone b/gone\n{note}{patch('new', '4', 1, 'n')}"
    )
