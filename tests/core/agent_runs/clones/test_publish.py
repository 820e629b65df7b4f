"""Publishing to a repository, and code of hostile repositories and trees."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from draftsman.agent_runs.clones.git import NO_ENTRY, explain_error, git_environment
from draftsman.agent_runs.clones.source import RepoSource
from draftsman.agent_runs.clones.workspace import Snapshot, Workspace
from draftsman.errors import Failure

CREATED = datetime(2024, 5, 17, 12, 0, tzinfo=UTC)
STRANGER = 54321 if os.geteuid() == 0 else os.geteuid()
"""The owner of the source: another user, if the tests run as root."""
HOOKS = (
    "pre-receive",
    "update",
    "post-receive",
    "post-update",
    "reference-transaction",
    "push-to-checkout",
    "proc-receive",
    "pre-push",
    "post-checkout",
    "post-index-change",
    "fsmonitor",
)


def run(*arguments: str, cwd: Path) -> str:
    completed = subprocess.run(
        ["git", *arguments],
        cwd=cwd,
        env=git_environment() | {"GIT_CONFIG_COUNT": "0"},
        capture_output=True,
        check=True,
    )
    return completed.stdout.decode().strip()


def own(folder: Path) -> None:
    """Give the folder to the other user, and make its parents accessible."""
    for path in (folder, *folder.rglob("*")):
        os.chown(path, STRANGER, STRANGER if os.geteuid() == 0 else -1, follow_symlinks=False)
    for parent in (above for above in folder.parents if above.stat().st_mode & 0o001 == 0):
        parent.chmod(parent.stat().st_mode | 0o011)


def contents(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    """Return all files and folders below: mode, owner, content."""
    entries = {}
    for path in folder.rglob("*"):
        status = path.lstat()
        content = path.read_bytes() if path.is_file() else b""
        entries[str(path.relative_to(folder))] = (status.st_mode, status.st_uid, content)
    return entries


def traps(git_dir: Path, canary: Path) -> None:
    """Configure every program that git could start."""
    trap = f"touch {canary}; cat"
    (git_dir / "hooks").mkdir(exist_ok=True)
    for name in HOOKS:
        (git_dir / "hooks" / name).write_text(f"#!/bin/sh\ntouch {canary}\n")
        (git_dir / "hooks" / name).chmod(0o755)
    settings = {
        "core.fsmonitor": f"{git_dir}/hooks/fsmonitor",
        "core.hooksPath": f"{git_dir}/hooks",
        "core.sshCommand": trap,
        "core.alternateRefsCommand": trap,
        "core.pager": trap,
        "core.editor": trap,
        "core.gitProxy": trap,
        "credential.helper": f"!{trap}",
        "diff.external": trap,
        "diff.trap.command": trap,
        "diff.trap.textconv": trap,
        "filter.trap.clean": trap,
        "filter.trap.smudge": trap,
        "filter.trap.process": trap,
        "filter.trap.required": "true",
        "gpg.program": trap,
        "commit.gpgSign": "true",
        "receive.fsckObjects": "true",
        "receive.denyCurrentBranch": "updateInstead",
        "uploadpack.packObjectsHook": trap,
    }
    with (git_dir / "config").open("a") as config:
        for key, value in settings.items():
            section, *names, variable = key.split(".")
            heading = " ".join([section, *map(json.dumps, names)])
            config.write(f"[{heading}]\n\t{variable} = {json.dumps(value)}\n")
    (git_dir / "info").mkdir(exist_ok=True)
    (git_dir / "info" / "attributes").write_text("* filter=trap diff=trap\n")


@pytest.fixture
def canary() -> Iterator[Path]:
    """Give the path of a file that each hostile program creates."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)
        yield Path(folder, "dead")


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """Give a folder that other users can access, unlike `tmp_path`."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    repository = tmp_path / "source"
    run("init", "-q", "-bmain", "--template=", str(repository), cwd=tmp_path)
    (repository / "one.txt").write_text("one\n")
    run("add", "-A", cwd=repository)
    run("commit", "-qm", "first", cwd=repository)
    return repository


async def work(tmp_path: Path, source: Path, text: str = "two\n", number: int = 1) -> Workspace:
    workspace = await Workspace.prepare(
        tmp_path / "data", RepoSource.of(str(source)), job=7, run=number, created_at=CREATED
    )
    (workspace.path / "one.txt").write_text(text)
    return workspace


async def test_publishing_adds_objects_and_the_branch_and_nothing_else(
    source: Path, tmp_path: Path
) -> None:
    (source / "one.txt").write_text("not committed\n")
    (source / "staged.txt").write_text("staged\n")
    run("add", "staged.txt", cwd=source)
    own(source)
    before = contents(source)
    workspace = await work(tmp_path, source)
    snapshot = await workspace.snapshot("work")
    await workspace.publish(snapshot)
    after = contents(source)
    new = after.keys() - before.keys()
    branch = {".git/refs/heads/draftsman", ".git/refs/heads/draftsman/D-7"}
    log = {".git/logs/refs/heads/draftsman", ".git/logs/refs/heads/draftsman/D-7"}
    assert {name for name in new if not name.startswith(".git/objects/")} == branch | log
    assert {name: after[name] for name in before} == before
    assert {after[name][1] for name in after} == {STRANGER}
    owner = ["-c", f"safe.directory={source}"]
    assert run(*owner, "rev-parse", "draftsman/D-7", cwd=source) == snapshot.commit
    assert run(*owner, "fsck", "--strict", cwd=source) == ""


async def test_publishing_twice_changes_nothing_the_second_time(
    source: Path, tmp_path: Path
) -> None:
    workspace = await work(tmp_path, source)
    snapshot = await workspace.snapshot("work")
    await workspace.publish(snapshot)
    before = contents(source)
    second = await work(tmp_path, source, number=2)
    await second.publish(await second.snapshot("work"))
    assert contents(source) == before


async def test_a_branch_is_replaced_only_at_its_expected_commit(
    source: Path, tmp_path: Path
) -> None:
    first = await (workspace := await work(tmp_path, source)).snapshot("work")
    await workspace.publish(first)
    second = await (later := await work(tmp_path, source, "three\n", 2)).snapshot("more")
    for wrong in (None, first.base_sha):
        with pytest.raises(Failure, match=r"stale info.*; the branch has other commits") as raised:
            await later.publish(second, wrong)
        assert raised.value.code == "branch_moved"
        assert run("rev-parse", "draftsman/D-7", cwd=source) == first.commit
    await later.publish(second, first.commit)
    assert run("rev-parse", "draftsman/D-7", cwd=source) == second.commit
    run("update-ref", "-d", "refs/heads/draftsman/D-7", cwd=source)
    with pytest.raises(Failure, match="stale info"):
        await later.publish(second, first.commit)


async def test_a_checked_out_branch_is_not_changed(source: Path, tmp_path: Path) -> None:
    run("config", "receive.denyCurrentBranch", "updateInstead", cwd=source)
    run("checkout", "-q", "-b", "draftsman/D-7", cwd=source)
    workspace = await work(tmp_path, source)
    snapshot = await workspace.snapshot("work")
    with pytest.raises(Failure, match="check out another branch") as raised:
        await workspace.publish(snapshot, snapshot.base_sha)
    assert raised.value.code == "branch_checked_out"
    assert (source / "one.txt").read_text() == "one\n"


async def test_a_conflicting_branch_and_a_missing_source_are_reported(
    source: Path, tmp_path: Path
) -> None:
    run("branch", "draftsman", cwd=source)
    workspace = await work(tmp_path, source)
    snapshot = await workspace.snapshot("work")
    with pytest.raises(Failure, match="another branch conflicts with its name") as raised:
        await workspace.publish(snapshot)
    assert raised.value.code == "branch_moved"
    shutil.rmtree(source)
    with pytest.raises(Failure, match=r"cannot read .*source") as raised:
        await workspace.publish(snapshot)
    assert raised.value.code == "source_gone"


async def test_no_hook_or_filter_of_the_source_runs(
    source: Path, tmp_path: Path, canary: Path
) -> None:
    traps(source / ".git", canary)
    own(source)
    workspace = await work(tmp_path, source)
    await workspace.publish(await workspace.snapshot("work"))
    assert not canary.exists()


async def test_a_source_that_its_owner_cannot_read_is_reported(
    source: Path, tmp_path: Path
) -> None:
    own(source)
    tmp_path.chmod(0o700)
    if os.geteuid() == STRANGER:
        await work(tmp_path, source)
        return
    with pytest.raises(Failure, match=rf"\b{STRANGER}\b.*{source}\b") as raised:
        await work(tmp_path, source)
    assert raised.value.code == "permission"


def test_the_error_for_a_source_that_its_owner_cannot_read_has_a_remedy() -> None:
    errors = f"warning: x\n{NO_ENTRY} 7 /srv/a b\nfatal: Could not read from remote repository.\n"
    assert str(explain_error("fetch", errors)) == (
        "git: fetch: uid 7 owns /srv/a b and cannot enter it; give that user access to the parent"
        " folders, or run as that user"
    )


def test_the_traps_work_without_protection(source: Path, canary: Path) -> None:
    traps(source / ".git", canary)
    subprocess.run(["git", "status"], cwd=source, check=False, capture_output=True)
    assert canary.exists()


async def all_files(workspace: Workspace) -> Snapshot:
    snapshot = await workspace.snapshot("work")
    await workspace.diff(snapshot)
    await workspace.diffstat(snapshot)
    await workspace.bundle(snapshot)
    await workspace.publish(snapshot)
    unchanged = await workspace.snapshot("work")
    await workspace.remove()
    return unchanged


async def test_no_hook_or_filter_of_an_agents_clone_runs(
    source: Path, tmp_path: Path, canary: Path
) -> None:
    workspace = await work(tmp_path, source)
    (workspace.path / ".gitattributes").write_text("* filter=trap diff=trap ident\n")
    (workspace.path / ".gitmodules").write_text('[submodule "x"]\n\tpath = x\n\turl = ext::sh\n')
    traps(workspace.path / ".git", canary)
    snapshot = await all_files(workspace)
    assert not canary.exists()
    assert snapshot.files_changed == 3


async def test_a_nested_repository_is_neither_run_nor_included(
    source: Path, tmp_path: Path, canary: Path
) -> None:
    workspace = await work(tmp_path, source)
    for name in ("clone", "deep/er\nclone", "unborn"):
        inner = workspace.path / name
        run("init", "-q", str(inner), cwd=tmp_path)
        (inner / "file.txt").write_text("x\n")
        if name != "unborn":
            run("add", "-A", cwd=inner)
            run("commit", "-qm", "x", cwd=inner)
            (inner / "file.txt").write_text("y\n")
        traps(inner / ".git", canary)
    snapshot = await all_files(workspace)
    assert not canary.exists()
    assert snapshot.skipped == ("clone", "deep/er\nclone", "unborn")
    assert snapshot.files_changed == 1


async def test_a_submodule_is_unchanged_and_not_run(
    source: Path, tmp_path: Path, canary: Path
) -> None:
    other = tmp_path / "other"
    run("clone", "-q", str(source), str(other), cwd=tmp_path)
    allow = ("-c", "protocol.file.allow=always")
    run(*allow, "submodule", "add", "-q", str(other), "sub", cwd=source)
    run("commit", "-qm", "with a submodule", cwd=source)
    workspace = await work(tmp_path, source)
    sub = workspace.path / "sub"
    shutil.rmtree(sub)
    run("clone", "-q", str(other), str(sub), cwd=tmp_path)
    (sub / "one.txt").write_text("changed\n")
    run("commit", "-qam", "moved on", cwd=sub)
    (sub / "one.txt").write_text("and changed\n")
    traps(sub / ".git", canary)
    snapshot = await all_files(workspace)
    assert not canary.exists()
    assert snapshot.skipped == ("sub",)
    assert snapshot.files_changed == 1


async def test_a_repository_created_in_a_tracked_folder_hides_no_changes(
    source: Path, tmp_path: Path, canary: Path
) -> None:
    (source / "pkg").mkdir()
    (source / "pkg" / "code.py").write_text("1\n")
    run("add", "-A", cwd=source)
    run("commit", "-qm", "second", cwd=source)
    workspace = await work(tmp_path, source)
    run("init", "-q", str(workspace.path / "pkg"), cwd=tmp_path)
    traps(workspace.path / "pkg" / ".git", canary)
    (workspace.path / "pkg" / "code.py").write_text("2\n")
    (workspace.path / "pkg" / "new.py").write_text("3\n")
    snapshot = await all_files(workspace)
    assert not canary.exists()
    assert snapshot.files_changed == 3
