"""The difference between two patches of the same base, compared with git."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path
from typing import Final

import pytest

from draftsman.domain.messages.diff import diffstat
from draftsman.domain.messages.interdiff import interdiff
from draftsman.handlers.clone.git import git_environment

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
        git(repository, "read-tree", first)
        if patch:
            git(repository, "apply", "--cached", "--unidiff-zero", "-", data=patch)
        assert git(repository, "write-tree").strip() == second, patch


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


@pytest.mark.parametrize("kind", ["GIT binary patch", "old mode 100644", "rename from b"])
def test_a_file_without_lines_to_compare_is_shown_in_full_with_a_note(kind: str) -> None:
    opaque = f"diff --git a/a b/a\n{kind}\nsomething\n"
    shown = interdiff(FIRST, opaque)
    assert shown.startswith("diff --git a/a b/a\n# compared with the base")
    assert shown.endswith(f"{kind}\nsomething\n")
    assert interdiff(opaque, opaque) == ""
