"""A file that git converts is no work if nobody touched it; what it leaves out is named."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from draftsman.agent_runs.clones.left_out import SHOWN, LeftOut, described
from draftsman.agent_runs.clones.workspace import Snapshot, Workspace
from tests.attacks.catalog import attack
from tests.core.agent_runs.clones.test_workspace import commit_all, prepare, run

ATTRIBUTES = "*.txt text\n*.c ident\n*.u working-tree-encoding=UTF-16\n"
CONVERTED = {
    "crlf.txt": b"one\r\ntwo\r\n",
    "id.c": b"/* $Id: 0123 $ */\n",
    "deep/crlf.txt": b"a\r\n",
}
"""Files as a commit has them that was made before the attributes."""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Give a repository with files that `git add` would change."""
    folder = tmp_path / "source"
    (folder / "deep").mkdir(parents=True)
    run("init", "-q", "-bmain", "--template=", ".", cwd=folder)
    for name, content in CONVERTED.items():
        (folder / name).write_bytes(content)
    (folder / "wrong.u").write_bytes(b"no BOM")
    commit_all(folder, "first")
    (folder / ".gitattributes").write_text(ATTRIBUTES)
    run("add", ".gitattributes", cwd=folder)
    run("commit", "-qm", "attributes", cwd=folder)
    return folder


def touch_all(workspace: Workspace) -> None:
    """Let git read all files again, as after a change of the owner."""
    for path in workspace.path.rglob("*"):
        if ".git" not in path.parts and path.is_file():
            os.utime(path, (1, 1))


async def work(workspace: Workspace) -> Snapshot:
    touch_all(workspace)
    return await workspace.snapshot("work")


async def test_untouched_files_are_no_work(tmp_path: Path, source: Path) -> None:
    workspace = await prepare(tmp_path / "data", source)
    snapshot = await work(workspace)
    assert (snapshot.files_changed, snapshot.left_out, snapshot.refused) == (0, (), ())
    (workspace.path / "crlf.txt").write_bytes(b"one\r\ntwo\r\nthree\r\n")
    (workspace.path / "deep" / "crlf.txt").chmod(0o755)
    (workspace.path / "new.txt").write_bytes(b"new\r\n")
    first = await work(workspace)
    paths = [file.path for file in await workspace.changed_files(first.commit)]
    assert paths == ["crlf.txt", "deep/crlf.txt", "new.txt"]
    # a later run goes on with the same work
    bundle = await workspace.bundle(first)
    later = await prepare(tmp_path / "data", source, run=2, bundle=bundle)
    assert (await work(later)).tree == first.tree
    unset = await prepare(tmp_path / "data", source, run=3, bundle=bundle, restored=False)
    await unset.restore()
    assert (await work(unset)).tree == first.tree


async def test_a_file_whose_lines_an_agent_converts_is_work(tmp_path: Path, source: Path) -> None:
    workspace = await prepare(tmp_path / "data", source)
    (workspace.path / "crlf.txt").write_bytes(b"one\ntwo\n")
    snapshot = await work(workspace)
    assert [file.path for file in await workspace.changed_files(snapshot.commit)] == ["crlf.txt"]


@attack(
    "An agent creates a file that git cannot record: a FIFO, `git~1`, `.GIT`, a wrong encoding",
    surface="tree",
    with_sandbox="the job fails and is not repeated; its error names the path, and its patch has"
    " the rest of the work",
)
async def test_files_that_git_refuses_are_named_and_the_rest_is_recorded(
    tmp_path: Path, source: Path
) -> None:
    workspace = await prepare(tmp_path / "data", source)
    (workspace.path / "crlf.txt").unlink()
    os.mkfifo(workspace.path / "crlf.txt")
    (workspace.path / "d" / ".GIT").mkdir(parents=True)
    (workspace.path / "d" / ".GIT" / "config").write_text("x")
    (workspace.path / "git~1").write_text("x")
    (workspace.path / "bad.u").write_bytes(b"no BOM")
    (workspace.path / "wrong.u").write_bytes(b"no BOM either")
    (workspace.path / "rest.md").write_text("rest")
    snapshot = await work(workspace)
    assert [text.partition(" (")[0] for text in snapshot.refused] == [
        "bad.u",
        "crlf.txt",
        "d/.GIT/config",
        "git~1",
        "wrong.u",
    ]
    assert [file.path for file in await workspace.changed_files(snapshot.commit)] == ["rest.md"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
async def test_what_may_not_be_read_is_named(tmp_path: Path, source: Path) -> None:
    workspace = await prepare(tmp_path / "data", source)
    for name in ("closed", "deep"):
        (workspace.path / name).mkdir(exist_ok=True)
        (workspace.path / name / "f").write_text("x")
        (workspace.path / name).chmod(0)
    (workspace.path / "rest.md").write_text("rest")
    snapshot = await workspace.snapshot("work")
    for name in ("closed", "deep"):
        (workspace.path / name).chmod(0o700)
    assert "closed (permission denied)" in snapshot.left_out
    assert [file.path for file in await workspace.changed_files(snapshot.commit)] == ["rest.md"]


def test_what_git_could_not_read_is_found_in_its_errors() -> None:
    left_out = LeftOut()
    errors = (
        b"warning: could not open directory 'a b/': Permission denied\n"
        b"error: open(\"z's\"): Permission denied\nerror: unable to index file 'z's'\n"
    )
    assert left_out.add_errors(errors)
    assert not left_out.add_errors(errors)
    assert described(left_out.unread) == ("a b (permission denied)", "z's (permission denied)")
    assert left_out.refused == {}
    many = {f"{n:03}\n".encode(): "x" for n in range(SHOWN + 2)}
    assert described(many)[0] == r"000\n (x)"
    assert described(many)[-1] == "2 more"


async def test_a_submodule_without_files_is_not_left_out(tmp_path: Path, source: Path) -> None:
    head = run("rev-parse", "HEAD", cwd=source)
    run("update-index", "--add", "--cacheinfo", f"160000,{head},sub", cwd=source)
    run("commit", "-qm", "submodule", cwd=source)
    workspace = await prepare(tmp_path / "data", source)
    snapshot = await workspace.snapshot("work")
    assert (snapshot.skipped, snapshot.left_out, snapshot.files_changed) == (("sub",), (), 0)
    (workspace.path / "sub" / "file").write_text("x")
    run("init", "-q", str(workspace.path / "clone"), cwd=tmp_path)
    (workspace.path / "clone" / "file").write_text("x")
    snapshot = await workspace.snapshot("work")
    own = "a repository of its own"
    assert snapshot.left_out == (f"clone ({own})", f"sub ({own})")


async def test_all_files_of_repositories_in_the_tree_are_included(
    tmp_path: Path, source: Path
) -> None:
    """Whatever their `.git` is; it stays in the tree of the agent. Submodules stay as they are."""
    head = run("rev-parse", "HEAD", cwd=source)
    run("update-index", "--add", "--cacheinfo", f"160000,{head},sub", cwd=source)
    run("commit", "-qm", "submodule", cwd=source)
    workspace = await prepare(tmp_path / "data", source, includes_all=True)
    for name in ("clone", "worktree", "linked", "sub"):
        run("init", "-q", str(workspace.path / name), cwd=tmp_path)
        (workspace.path / name / "file").write_text(name)
    (workspace.path / "worktree" / ".git").rename(tmp_path / "elsewhere")
    (workspace.path / "worktree" / ".git").write_text(f"gitdir: {tmp_path / 'elsewhere'}\n")
    (workspace.path / "linked" / ".git").rename(tmp_path / "linked")
    (workspace.path / "linked" / ".git").symlink_to(tmp_path / "linked")
    first = await workspace.snapshot("work")
    own = "a repository of its own"
    assert first.included == dict.fromkeys(("clone", "linked", "worktree"), own)
    assert first.left_out == (f"sub ({own})",)
    changed = [file.path for file in await workspace.changed_files(first.commit)]
    assert changed == ["clone/file", "linked/file", "worktree/file"]
    assert (workspace.path / "clone" / ".git" / "HEAD").is_file()
    assert (workspace.path / "linked" / ".git").is_symlink()
    assert await workspace.snapshot("work") == first
    rest = await workspace.without_included(first, "rest")
    assert (rest.files_changed, rest.left_out) == (0, first.all_left_out)
    (workspace.path / "clone" / "file").unlink()
    assert "clone" not in (await workspace.snapshot("work")).included


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
async def test_what_may_not_be_read_is_included_too(tmp_path: Path, source: Path) -> None:
    workspace = await prepare(tmp_path / "data", source, includes_all=True)
    (workspace.path / "closed" / "deep").mkdir(parents=True)
    (workspace.path / "closed" / "deep" / "f").write_text("x")
    (workspace.path / "closed" / "deep" / "f").chmod(0)
    (workspace.path / "closed" / "deep").chmod(0)
    (workspace.path / "closed").chmod(0)
    snapshot = await workspace.snapshot("work")
    assert snapshot.included == {"closed": "permission denied"}
    files = [file.path for file in await workspace.changed_files(snapshot.commit)]
    assert files == ["closed/deep/f"]
    rest = await workspace.without_included(snapshot, "rest")
    assert (rest.files_changed, rest.left_out) == (0, ("closed (permission denied)",))
