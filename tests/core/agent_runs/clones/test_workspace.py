"""Clones, snapshots, bundles and publishing, with real git on real repositories."""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import os
import shutil
import subprocess
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil
import pytest

from draftsman.agent_runs.clones import git as git_module
from draftsman.agent_runs.clones.git import git, git_environment
from draftsman.agent_runs.clones.source import RepoSource
from draftsman.agent_runs.clones.workspace import Workspace
from draftsman.errors import Failure
from draftsman.jobs.retries import ErrorClass, classify
from draftsman.settings.quotas import QuotaSettings
from tests.attacks.catalog import attack
from tests.support.cases import cases

DEADLINE = 20.0
CREATED = datetime(2024, 5, 17, 12, 0, tzinfo=UTC)


def run(*arguments: str, cwd: Path) -> str:
    completed = subprocess.run(
        ["git", "-c", "protocol.file.allow=always", *arguments],
        cwd=cwd,
        env=git_environment() | {"GIT_OPTIONAL_LOCKS": "1"},
        capture_output=True,
        check=True,
    )
    return completed.stdout.decode(errors="surrogateescape").strip()


def commit_all(repository: Path, message: str) -> str:
    run("add", "-A", cwd=repository)
    run("commit", "-qm", message, cwd=repository)
    return run("rev-parse", "HEAD", cwd=repository)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a repository with two commits, a branch, a tag, and every kind of file, to copy."""
    repository = tmp_path_factory.mktemp("template") / "source"
    run("init", "-q", "-bmain", "--template=", str(repository), cwd=repository.parent)
    (repository / "old.txt").write_text("old\n")
    commit_all(repository, "first")
    run("branch", "older", cwd=repository)
    run("tag", "-am", "a tag", "v1", cwd=repository)
    (repository / "pkg").mkdir()
    (repository / "pkg" / "code.py").write_text("print(1)\nprint(2)\n")
    (repository / "run.sh").write_text("#!/bin/sh\n")
    (repository / "run.sh").chmod(0o755)
    (repository / "data.bin").write_bytes(bytes(range(256)))
    (repository / ".gitignore").write_text("*.log\n")
    (repository / "link").symlink_to("old.txt")
    commit_all(repository, "second")
    return repository


@pytest.fixture
def source(template: Path, tmp_path: Path) -> Path:
    """Give a copy of that repository."""
    shutil.copytree(template, tmp_path / "source", symlinks=True)
    return tmp_path / "source"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


async def prepare(data: Path, source: Path | str, **options: Any) -> Workspace:
    arguments = {"job": 7, "run": 1, "created_at": CREATED, **options}
    return await Workspace.prepare(data, RepoSource.of(str(source)), **arguments)


def tree_of(folder: Path) -> dict[str, bytes | str]:
    """Return all files below the folder: content or link target, and the mode."""
    entries: dict[str, bytes | str] = {}
    for parent, _, names in os.walk(folder):
        for path in (Path(parent, name) for name in names):
            mode = f"{path.lstat().st_mode:o} "
            content = str(path.readlink()).encode() if path.is_symlink() else path.read_bytes()
            entries[str(path.relative_to(folder))] = mode.encode() + content
    return entries


async def test_the_clone_is_independent_and_on_its_own_branch(data: Path, source: Path) -> None:
    workspace = await prepare(data, source)
    assert run("status", "--porcelain", "--branch", cwd=workspace.path) == "## draftsman/D-7"
    assert run("rev-parse", "HEAD", cwd=workspace.path) == run("rev-parse", "main", cwd=source)
    assert workspace.base_sha == run("rev-parse", "main", cwd=source)
    assert run("remote", cwd=workspace.path) == ""
    git_dir = workspace.path / ".git"
    assert git_dir.is_dir()
    assert not (git_dir / "objects" / "info" / "alternates").exists()
    assert all(path.stat().st_nlink == 1 for path in git_dir.rglob("*") if path.is_file())
    assert str(data) not in (git_dir / "config").read_text()
    assert list(workspace.home.iterdir()) == []


async def test_uncommitted_changes_of_the_user_are_not_cloned(data: Path, source: Path) -> None:
    (source / "old.txt").write_text("changed\n")
    (source / "new.txt").write_text("new\n")
    workspace = await prepare(data, source)
    assert (workspace.path / "old.txt").read_text() == "old\n"
    assert not (workspace.path / "new.txt").exists()


@pytest.mark.parametrize("base", ["older", "v1", "refs/heads/older", "SHA"])
async def test_the_base_is_a_branch_a_tag_or_a_commit(base: str, data: Path, source: Path) -> None:
    older = run("rev-parse", "older", cwd=source)
    workspace = await prepare(data, source, base=older if base == "SHA" else base)
    assert workspace.base_sha == older
    assert run("rev-parse", "HEAD", cwd=workspace.path) == older


async def test_a_detached_head_and_a_shallow_clone_are_sources_too(
    data: Path, source: Path, tmp_path: Path
) -> None:
    run("clone", "-q", "--depth=1", f"file://{source}", str(tmp_path / "shallow"), cwd=tmp_path)
    run("checkout", "-q", "--detach", cwd=tmp_path / "shallow")
    workspace = await prepare(data, tmp_path / "shallow")
    (workspace.path / "old.txt").write_text("changed\n")
    snapshot = await workspace.snapshot("change")
    bundle = await workspace.bundle(snapshot)
    restored = await prepare(data, tmp_path / "shallow", run=2, bundle=bundle)
    assert (restored.path / "old.txt").read_text() == "changed\n"
    await restored.publish(snapshot)
    published = run("rev-parse", "draftsman/D-7", cwd=tmp_path / "shallow")
    assert published == snapshot.commit


async def test_every_kind_of_change_is_in_the_snapshot_and_in_its_patch(
    data: Path, source: Path, tmp_path: Path
) -> None:
    workspace = await prepare(data, source)
    tree = workspace.path
    (tree / "old.txt").unlink()
    (tree / "pkg" / "code.py").write_text("print(1)\nprint(3)\n")
    (tree / "pkg" / "code.py").chmod(0o755)
    (tree / "run.sh").chmod(0o644)
    (tree / "data.bin").write_bytes(bytes(reversed(range(256))))
    (tree / "escape").symlink_to("/etc/passwd")
    (tree / "debug.log").write_text("ignored\n")
    (tree / "__pycache__").mkdir()
    (tree / "__pycache__" / "code.pyc").write_bytes(b"\0")
    for name in ("a\nb", 'quo"te', "-n", "--all", ":(exclude)x", "ümlaut", " ", "tab\tbed"):
        (tree / name).write_text(name)
    snapshot = await workspace.snapshot("all kinds")
    assert snapshot.files_changed == 13
    assert (snapshot.insertions, snapshot.deletions) == (11, 2)
    patch = await workspace.diff(snapshot)
    assert b"root:" not in patch
    fresh = tmp_path / "fresh"
    run("clone", "-q", str(source), str(fresh), cwd=tmp_path)
    (fresh / "patch").write_bytes(patch)
    run("apply", "--index", "patch", cwd=fresh)
    assert run("write-tree", cwd=fresh) == snapshot.tree
    assert "13 files changed" in await workspace.diffstat(snapshot)


async def test_file_names_that_are_not_utf8_are_kept(data: Path, source: Path) -> None:
    workspace = await prepare(data, source)
    Path(os.fsdecode(os.fsencode(workspace.path) + b"/\xff\xfe")).write_text("x")
    snapshot = await workspace.snapshot("odd")
    names = await git("ls-tree", "-z", "--name-only", snapshot.commit, cwd=workspace.mirror)
    assert b"\xff\xfe" in names.split(b"\0")


async def test_an_untouched_tree_has_no_changes(data: Path, source: Path) -> None:
    workspace = await prepare(data, source)
    snapshot = await workspace.snapshot("nothing")
    assert (snapshot.files_changed, snapshot.insertions, snapshot.deletions) == (0, 0, 0)
    assert await workspace.diff(snapshot) == b""
    restored = await prepare(data, source, run=2, bundle=await workspace.bundle(snapshot))
    assert run("status", "--porcelain", cwd=restored.path) == ""


async def test_a_tree_emptied_by_its_agent_is_all_deletions(data: Path, source: Path) -> None:
    workspace = await prepare(data, source)
    for entry in workspace.path.iterdir():
        shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
    snapshot = await workspace.snapshot("emptied")
    assert snapshot.files_changed == 6


async def test_commits_and_branches_of_the_agent_do_not_change_the_snapshot(
    data: Path, source: Path
) -> None:
    workspace = await prepare(data, source)
    (workspace.path / "old.txt").write_text("changed\n")
    before = await workspace.snapshot("work")
    commit_all(workspace.path, "the agent commits")
    run("checkout", "-q", "-b", "elsewhere", cwd=workspace.path)
    assert await workspace.snapshot("work") == before


async def test_the_same_work_is_the_same_commit_in_every_run(data: Path, source: Path) -> None:
    commits = set()
    for number in (1, 2):
        workspace = await prepare(data, source, run=number)
        (workspace.path / "old.txt").write_text("changed\n")
        commits.add((await workspace.snapshot("work")).commit)
    assert len(commits) == 1
    author = run("show", "-s", "--format=%an %ae %ct %cn", commits.pop(), cwd=workspace.mirror)
    stamp = int(CREATED.timestamp())
    assert author == f"draftsman draftsman@localhost {stamp} draftsman"


async def test_work_moves_to_another_host_uncommitted(
    data: Path, source: Path, tmp_path: Path
) -> None:
    workspace = await prepare(data, source)
    tree = workspace.path
    (tree / "old.txt").unlink()
    (tree / "pkg" / "new.py").write_text("x = 1\n")
    (tree / "run.sh").chmod(0o644)
    snapshot = await workspace.snapshot("half done")
    bundle = await workspace.bundle(snapshot)
    (source / "later.txt").write_text("the source moves on\n")
    commit_all(source, "third")

    elsewhere = await prepare(
        tmp_path / "elsewhere", source, run=2, base=snapshot.base_sha, bundle=bundle
    )
    assert run("rev-parse", "HEAD", cwd=elsewhere.path) == snapshot.base_sha
    assert run("diff", "--cached", "--name-only", cwd=elsewhere.path) == ""
    status = run("status", "--porcelain", cwd=elsewhere.path).splitlines()
    assert [line.split()[-1] for line in status] == ["old.txt", "run.sh", "pkg/new.py"]
    shutil.rmtree(tree / ".git")
    shutil.rmtree(elsewhere.path / ".git")
    assert tree_of(elsewhere.path) == tree_of(tree)
    assert await elsewhere.snapshot("half done") == snapshot


async def test_a_mirrored_base_is_cloned_without_its_source(data: Path, source: Path) -> None:
    first = await prepare(data, source)
    snapshot = await first.snapshot("work")
    shutil.rmtree(source / ".git")
    bundle = await first.bundle(snapshot)
    restored = await prepare(data, source, run=2, base=first.base_sha, bundle=bundle)
    assert (restored.path / "old.txt").read_text() == "old\n"


async def test_runs_of_a_source_can_start_concurrently(data: Path, source: Path) -> None:
    workspaces = await asyncio.gather(*(prepare(data, source, job=n) for n in range(1, 7)))
    assert len({workspace.path for workspace in workspaces}) == 6
    assert {workspace.base_sha for workspace in workspaces} == {
        run("rev-parse", "main", cwd=source)
    }
    assert [path.suffix for path in (data / "mirrors").iterdir()] == [".git"]


async def test_a_removed_workspace_leaves_only_the_mirror(data: Path, source: Path) -> None:
    workspace = await prepare(data, source)
    locked = workspace.path / "locked" / "inner"
    locked.mkdir(parents=True)
    (locked / "file").write_text("x")
    locked.chmod(0)
    locked.parent.chmod(0o500)
    await workspace.snapshot("work")
    await workspace.remove()
    assert list((data / "runs").iterdir()) == []
    refs = run("for-each-ref", "--format=%(refname)", cwd=workspace.mirror)
    assert refs.startswith("refs/draftsman/fetched/")
    assert len(refs.splitlines()) == 1


async def test_a_base_may_be_the_start_of_a_commit_id(data: Path, source: Path) -> None:
    commit = run("rev-parse", "main~1", cwd=source)
    workspace = await prepare(data, source, base=commit[:8])
    assert (workspace.base_sha, run("rev-parse", "HEAD", cwd=workspace.path)) == (commit, commit)
    refs = run("for-each-ref", "--format=%(refname)", cwd=workspace.mirror).splitlines()
    assert not [ref for ref in refs if ref.startswith("refs/draftsman/tips")]
    tree = run("rev-parse", "main^{tree}", cwd=source)
    with pytest.raises(Failure, match=f"couldn't find remote ref {tree[:9]}"):
        await prepare(data, source, base=tree[:9], run=2)


async def test_a_short_id_of_several_commits_is_refused(data: Path, source: Path) -> None:
    tree = run("rev-parse", "main^{tree}", cwd=source)
    person = "A <a@example.org> 0 +0000"
    commits: dict[str, bytes] = {}
    for nth in itertools.count():
        text = f"tree {tree}\nauthor {person}\ncommitter {person}\n\n{nth}\n".encode()
        digest = hashlib.sha1(b"commit %d\0" % len(text) + text, usedforsecurity=False).hexdigest()
        if (short := digest[:4]) in commits:
            break
        commits[short] = text
    for branch, commit in (("one", text), ("other", commits[short])):
        written = await git(
            "hash-object", "-t", "commit", "-w", "--stdin", cwd=source, stdin=commit
        )
        run("branch", branch, written.decode().strip(), cwd=source)
    with pytest.raises(Failure, match=f"several commits start with {short}; give more characters"):
        await prepare(data, source, base=short)


@cases(
    ("base", "code", "message"),
    [
        (
            "no-such-branch",
            "no_such_ref",
            "couldn't find remote ref no-such-branch; use an existing branch",
        ),
        ("0" * 39 + "1", "no_such_ref", "not our ref"),
        ("--upload-pack=touch x", "no_such_ref", "invalid branch, tag or commit"),
        ("main:refs/heads/x", "no_such_ref", "invalid branch, tag or commit"),
        ("", "no_such_ref", "invalid branch, tag or commit"),
    ],
)
async def test_an_unknown_base_is_reported(
    base: str, code: str, message: str, data: Path, source: Path
) -> None:
    with pytest.raises(Failure, match=message) as raised:
        await prepare(data, source, base=base)
    assert (raised.value.origin, raised.value.code) == ("git", code)
    assert "\n" not in str(raised.value)


async def test_an_invalid_source_is_reported(data: Path, source: Path, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    run("init", "-q", str(tmp_path / "empty"), cwd=tmp_path)
    cases = {
        str(tmp_path / "missing"): ("not_a_repository", "missing is not a folder"),
        str(tmp_path / "folder"): ("not_a_repository", "does not appear to be a git repository"),
        str(source / "pkg"): ("not_a_repository", "use the top folder of a repository"),
        str(tmp_path / "empty"): ("no_commits", "empty has no commits; create a first commit"),
        "ext::sh -c touch% canary": ("url", "neither an absolute path nor a URL"),
        "--upload-pack=x:y": ("not_a_repository", "is not a folder"),
        "http://user:secret@127.0.0.1:9/x.git": ("url", "may not contain a password"),
        "http://127.0.0.1:9/x.git": ("address_refused", "is a loopback address"),
    }
    for repo, (code, message) in cases.items():
        with pytest.raises(Failure, match=message) as raised:
            await prepare(data, repo)
        assert (raised.value.origin, raised.value.code) == ("git", code)
        assert "\n" not in str(raised.value)
        assert "secret" not in str(raised.value)


async def test_a_missing_git_is_reported(
    data: Path, source: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Failure, match="git not found; install git") as raised:
        await prepare(data, source)
    assert raised.value.code == "git_missing"


@attack(
    "An agent replaces its clone by a link to a folder outside",
    surface="tree",
    with_sandbox="it is not read: the run fails with workspace_gone",
)
async def test_a_workspace_that_its_agent_removed_or_replaced_is_not_read(
    data: Path, source: Path
) -> None:
    workspace = await prepare(data, source)
    shutil.rmtree(workspace.path)
    workspace.path.symlink_to("/etc")
    with pytest.raises(Failure, match="the agent deleted its workspace") as raised:
        await workspace.snapshot("work")
    assert raised.value.code == "workspace_gone"


async def test_more_changes_than_an_artifact_may_have_are_refused(
    data: Path, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = await prepare(data, source)
    (workspace.path / "large.txt").write_bytes(os.urandom(300_000))
    snapshot = await workspace.snapshot("large")
    monkeypatch.setattr(git_module, "MAX_OUTPUT", 100_000)
    for make in (workspace.diff, workspace.bundle):
        with pytest.raises(Failure, match="more than 100,000 bytes of changes") as raised:
            await make(snapshot)
        assert raised.value.code == "too_large"


async def test_a_hanging_git_is_killed_with_its_children(tmp_path: Path) -> None:
    alias = f"alias.hang=!echo $$ > {tmp_path}/pid; sleep 1000"
    with pytest.raises(Failure, match=r"took more than 0\.5 s") as raised:
        await git("-c", alias, "hang", cwd=tmp_path, timeout=0.5)
    assert raised.value.code == "timeout"
    with suppress(psutil.NoSuchProcess):
        psutil.Process(int((tmp_path / "pid").read_text())).wait(DEADLINE)


# --- sizes ---------------------------------------------------------------------------------------


def repeated(folder: Path, content: bytes, levels: int, times: int) -> Path:
    """Make a repository with `times ** levels` files of this content, and few objects."""
    folder.mkdir()
    run("init", "-q", "-bmain", "--template=", ".", cwd=folder)
    (folder / "f").write_bytes(content)
    sha = run("hash-object", "-w", "f", cwd=folder)
    kind = "100644 blob"
    for _ in range(levels):
        entries = "".join(f"{kind} {sha}\tf{n}\n" for n in range(times))
        made = subprocess.run(
            ["git", "mktree"], cwd=folder, input=entries.encode(), capture_output=True, check=True
        )
        sha = made.stdout.decode().strip()
        kind = "040000 tree"
    commit = run("commit-tree", sha, "-m", "many", cwd=folder)
    run("update-ref", "refs/heads/main", commit, cwd=folder)
    return folder


@attack(
    "A small repository has the same large file, or the same folder, thousands of times",
    surface="repository",
    with_sandbox="its files are summed before the checkout; the job fails: `quota:tree`",
)
async def test_a_huge_tree_is_not_checked_out(data: Path, tmp_path: Path) -> None:
    large = repeated(tmp_path / "large", bytes(2**20), 2, 50)
    many = repeated(tmp_path / "many", b"", 12, 20)
    quotas = QuotaSettings(tree_files=10_000)
    for source, setting in ((large, "tree_bytes"), (many, "tree_files")):
        with pytest.raises(Failure, match=rf"\[quotas\] {setting}") as raised:
            await prepare(data, source, quotas=quotas)
        assert (raised.value.code, classify(raised.value)) == ("quota:tree", ErrorClass.PERMANENT)
    assert not list((data / "runs").iterdir())
    few = repeated(tmp_path / "few", b"1234", 2, 2)
    workspace = await prepare(data, few, quotas=QuotaSettings(tree_files=4))
    assert len(tree_of(workspace.path / "f0")) == 2


# --- object formats ------------------------------------------------------------------------------


@pytest.fixture
def sha256(tmp_path: Path) -> Path:
    """Give a repository whose objects have ids of SHA-256."""
    folder = tmp_path / "sha256"
    folder.mkdir()
    run("init", "-q", "-bmain", "--template=", "--object-format=sha256", ".", cwd=folder)
    (folder / "a.txt").write_text("one\n")
    commit_all(folder, "first")
    return folder


async def test_a_repository_with_sha256_works_from_its_clone_to_its_branch(
    data: Path, sha256: Path
) -> None:
    base = run("rev-parse", "main", cwd=sha256)
    assert len(base) == 64
    workspace = await prepare(data, sha256)
    assert workspace.base_sha == base
    (workspace.path / "a.txt").write_text("two\n")
    (workspace.path / "b.txt").write_text("new\n")
    first = await workspace.snapshot("first")
    bundle = await workspace.bundle(first)
    later = await prepare(data, sha256, run=2, base=base, bundle=bundle)
    snapshot = await later.snapshot("work")
    assert (snapshot.tree, snapshot.files_changed) == (first.tree, 2)
    mixed = await later.mixed(snapshot.commit, base, ["a.txt", "b.txt"])
    assert run("diff", "--stat", base, mixed, cwd=later.mirror) == ""
    await later.publish(snapshot)
    assert run("rev-parse", "draftsman/D-7", cwd=sha256) == snapshot.commit
    assert b"+two" in await later.diff(snapshot)


async def test_a_git_that_defaults_to_another_format_breaks_nothing(
    data: Path, source: Path, sha256: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = git_environment()
    monkeypatch.setattr(git_module, "git_environment", lambda: dict(environment))
    for default in ("sha1", "sha256"):
        environment["GIT_DEFAULT_HASH"] = default
        for repository, digits in ((source, 40), (sha256, 64)):
            workspace = await prepare(data / default, repository)
            (workspace.path / "new.txt").write_text("new\n")
            snapshot = await workspace.snapshot("work")
            assert (len(snapshot.commit), snapshot.files_changed) == (digits, 1)


async def test_a_repository_that_changed_its_format_is_named(data: Path, sha256: Path) -> None:
    workspace = await prepare(data, sha256)
    await workspace.remove()
    shutil.rmtree(sha256 / ".git")
    run("init", "-q", "-bmain", "--template=", "--object-format=sha1", ".", cwd=sha256)
    commit_all(sha256, "again")
    with pytest.raises(Failure, match="another object format") as raised:
        await prepare(data, sha256)
    assert raised.value.code == "object_format"
