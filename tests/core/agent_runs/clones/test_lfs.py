"""Contents of Git LFS in clones: from folders and from a server, in snapshots and bundles."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from draftsman.agent_runs.clones.clone_parts import CloneParts
from draftsman.agent_runs.clones.lfs import pointers_of, store_of
from draftsman.agent_runs.clones.lfs_filter import LfsObject, parse_pointer, store_content
from draftsman.agent_runs.clones.open_branches import branch_work
from draftsman.agent_runs.clones.source import RepoSource
from draftsman.agent_runs.clones.workspace import MAX_JUDGED, ContinuedBranch, Workspace
from draftsman.errors import Failure
from draftsman.forges.pull_request import GitLogin
from draftsman.settings.http import HttpSettings
from draftsman.settings.quotas import QuotaSettings
from draftsman_testing.forges.github import FakeGitHub
from tests.attacks.catalog import attack
from tests.core.agent_runs.clones.lfs_repository import BIG, add_lfs_files, pointer_to
from tests.core.agent_runs.clones.test_workspace import prepare
from tests.core.worker.agent_jobs import git, make_repository
from tests.support.cases import cases

LFS = CloneParts(lfs=True)
NEW = b"new\0" * 3000
SSH = """#!/bin/sh
for command; do :; done
case "$command" in
    git-lfs-authenticate*) echo "$command" >> {asked}; echo '{answer}';;
    *) exec sh -c "$command";;
esac
"""
"""A fake ssh, whose host has the repositories of this machine and a server of LFS."""
OID = "4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393"
POINTER = f"version https://git-lfs.github.com/spec/v1\noid sha256:{OID}\nsize 12345\n".encode()
"""The example of the specification."""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    repo = make_repository(tmp_path / "source", a="one\n")
    add_lfs_files(repo)
    return repo


def stored(repo: Path, branch: str, path: str) -> LfsObject | None:
    """Return the pointer in a branch."""
    data = git("cat-file", "blob", f"{branch}:{path}", cwd=repo).encode() + b"\n"
    return parse_pointer(data)


@cases(
    ("data", "item"),
    [
        (POINTER, LfsObject(OID, 12345)),
        (POINTER.replace(b"oid", b"ext-0-foo sha256:abc\noid"), LfsObject(OID, 12345)),
        (POINTER + b"\n", None),
        (POINTER[:-1], None),
        (POINTER.replace(b"12345", b"012"), None),
        (POINTER.replace(b"\n", b"\r\n"), None),
        (b"", None),
    ],
)
def test_a_pointer_is_that_of_the_specification(data: bytes, item: LfsObject | None) -> None:
    assert parse_pointer(data) == item
    if data == POINTER:
        assert item is not None
        assert item.pointer == data


async def test_files_have_their_contents_and_commits_their_pointers(
    tmp_path: Path, source: Path
) -> None:
    workspace = await prepare(tmp_path / "data", source, parts=LFS)
    assert (workspace.path / "big.bin").read_bytes() == BIG
    assert [part.text for part in workspace.missing_parts] == [
        "the contents of 1 file of Git LFS (gone.bin): the source does not have them"
    ]
    assert (await workspace.snapshot("nothing")).files_changed == 0
    (workspace.path / "new.bin").write_bytes(NEW)
    (workspace.path / "big.bin").write_bytes(BIG + b"more")
    (workspace.path / "empty.bin").write_bytes(b"")
    (workspace.path / "a.txt").write_text("two\n")
    snapshot = await workspace.snapshot("work")
    patch = await workspace.diff(snapshot)
    assert b"GIT binary patch" not in patch
    assert b"+two" in patch
    # on another machine
    bundle = await workspace.bundle(snapshot)
    later = await prepare(tmp_path / "other", source, run=2, bundle=bundle, parts=LFS)
    assert (later.path / "new.bin").read_bytes() == NEW
    again = await later.snapshot("work")
    assert again.tree == snapshot.tree
    await later.publish(again)
    item = stored(source, later.branch, "new.bin")
    assert item is not None
    assert item == store_content(tmp_path / "store", [NEW])[0]
    assert item.path(source / ".git" / "lfs").read_bytes() == NEW
    assert git("cat-file", "-s", f"{later.branch}:empty.bin", cwd=source) == "0"
    # the clone in which the work is validated
    fresh = await prepare(tmp_path / "other", source, run=3, base=again.base_sha, parts=LFS)
    await fresh.check_out(again.commit)
    assert (fresh.path / "new.bin").read_bytes() == NEW
    await fresh.keep_tracked()
    (fresh.path / "big.bin").write_bytes(b"changed by a validator")
    assert await fresh.undo_changes() == 1
    assert (fresh.path / "big.bin").read_bytes() == BIG + b"more"


async def test_without_lfs_pointers_stay_and_a_content_is_an_ordinary_file(
    tmp_path: Path, source: Path
) -> None:
    workspace = await prepare(tmp_path / "data", source)
    assert parse_pointer((workspace.path / "big.bin").read_bytes()) is not None
    assert [part.text for part in workspace.missing_parts] == [
        "the contents of 2 files of Git LFS (big.bin, gone.bin): set lfs = true in its profile"
    ]
    (workspace.path / "new.bin").write_bytes(NEW)
    (workspace.path / "big.bin").write_bytes(BIG)
    (workspace.path / "a.txt").write_text("two\n")
    snapshot = await workspace.snapshot("work")
    assert await workspace.ordinary_lfs_files(snapshot, ()) == ["big.bin", "new.bin"]


async def test_a_repository_without_lfs_misses_nothing(tmp_path: Path) -> None:
    plain = make_repository(tmp_path / "plain", a="one\n", pointer=POINTER)
    for number, parts in enumerate((LFS, CloneParts())):
        workspace = await prepare(tmp_path / "data", plain, run=number + 1, parts=parts)
        assert workspace.missing_parts == []
        assert await pointers_of(workspace.mirror, workspace.base_sha) == {}


async def test_contents_are_summed_before_they_are_fetched(tmp_path: Path, source: Path) -> None:
    quotas = QuotaSettings(tree_bytes=1024)
    with pytest.raises(Failure, match="Git LFS have more than 1,024 bytes") as failure:
        await prepare(tmp_path / "data", source, parts=LFS, quotas=quotas)
    assert failure.value.code == "quota:tree"
    [mirror] = (tmp_path / "data" / "mirrors").iterdir()
    assert not store_of(mirror).exists()


async def test_contents_of_people_on_a_branch_are_no_new_contents(
    tmp_path: Path, source: Path
) -> None:
    """Neither in the first run that continues the branch, nor in one with its checkpoint."""
    base = git("rev-parse", "HEAD", cwd=source)
    git("checkout", "-qb", "work", cwd=source)
    (source / "person.bin").write_bytes(pointer_to(source / ".git" / "lfs", b"of a person\n"))
    git("add", "-A", cwd=source)
    git("commit", "-qm", "by a person", cwd=source)
    head = git("rev-parse", "HEAD", cwd=source)
    remote = RepoSource.of(str(source))
    branch = await branch_work(
        tmp_path / "data", remote, branch="work", base_branch="main", base=base, job=1
    )
    assert branch is not None
    assert branch.parents == (head,)
    first = await prepare(tmp_path / "data", source, branch=branch, parts=LFS)
    assert (first.path / "person.bin").read_bytes() == b"of a person\n"
    (first.path / "new.bin").write_bytes(NEW)
    snapshot = await first.snapshot("work")
    assert len(await first.changed_contents(snapshot)) == 2
    continued = ContinuedBranch("work", parents=branch.parents)
    later = await prepare(
        tmp_path / "other",
        source,
        run=2,
        base=base,
        branch=continued,
        bundle=await first.bundle(snapshot),
        parts=LFS,
    )
    again = await later.snapshot("work")
    for workspace in (first, later):
        assert [item.size for item in await workspace._new_contents(again)] == [len(NEW)]


async def test_contents_that_no_run_has_used_for_days_are_deleted(
    tmp_path: Path, source: Path
) -> None:
    first = await prepare(tmp_path / "data", source, parts=LFS)
    (first.path / "new.bin").write_bytes(NEW)
    await first.snapshot("work")
    store = store_of(first.mirror)
    assert len(list(store.glob("objects/*/*/*"))) == 2
    for path in store.glob("objects/*/*/*"):
        os.utime(path, (1, 1))
    later = await prepare(tmp_path / "data", source, run=2, parts=LFS)
    await first.remove()
    item = stored(source, "main", "big.bin")
    assert item is not None
    assert list(store.glob("objects/*/*/*")) == [item.path(store)]
    await later.check_out(later.base_sha)
    assert (later.path / "big.bin").read_bytes() == BIG


async def test_only_the_content_of_a_pointer_is_taken_from_a_folder(
    tmp_path: Path, source: Path
) -> None:
    """A link to another file of this machine is not what the pointer stands for."""
    item = stored(source, "main", "big.bin")
    assert item is not None
    secret = tmp_path / "secret"
    secret.write_text("of the worker")
    path = item.path(source / ".git" / "lfs")
    path.unlink()
    path.symlink_to(secret)
    workspace = await prepare(tmp_path / "data", source, parts=LFS)
    assert parse_pointer((workspace.path / "big.bin").read_bytes()) == item
    assert len(workspace.missing_parts) == 1


async def test_short_contents_are_judged_and_the_others_named(tmp_path: Path, source: Path) -> None:
    workspace: Workspace = await prepare(tmp_path / "data", source, parts=LFS)
    (workspace.path / "text.bin").write_text("hidden = 1\n")
    (workspace.path / "large.bin").write_bytes(b"x" * (MAX_JUDGED + 1))
    (workspace.path / "unknown.bin").write_bytes(POINTER)
    for number in range(9):
        (workspace.path / f"many{number}.bin").write_bytes(b"%d" % number * (MAX_JUDGED - 1))
    snapshot = await workspace.snapshot("work")
    contents = await workspace.changed_contents(snapshot)
    assert len(contents) == 12
    assert b"hidden" not in await workspace.diff(snapshot)
    judged, rest = await workspace.with_contents(snapshot, contents)
    assert b"+hidden = 1" in await workspace.diff(judged)
    many = [path for path in rest if path.startswith("many")]
    assert sorted(rest) == sorted(["large.bin", "unknown.bin", *many])
    assert len(many) == 2, "more than all together may have"


@pytest.fixture
async def forge(tmp_path: Path, source: Path) -> AsyncIterator[FakeGitHub]:
    """Give a forge with the repository, whose server of LFS has the content of `big.bin`."""
    async with FakeGitHub(tmp_path / "forge") as fake:
        fake.publish(source)
        item = stored(source, "main", "big.bin")
        assert item is not None
        fake.world.lfs.objects[item.oid] = BIG
        yield fake


async def of_forge(fake: FakeGitHub, folder: Path, **arguments: Any) -> Workspace:
    async def login() -> GitLogin:
        return GitLogin("x-access-token", fake.world.token)

    remote = RepoSource.of(fake.url, HttpSettings(allow=("127.0.0.1",)), login)
    values: dict[str, Any] = {"job": 1, "run": 1, "parts": LFS} | arguments
    return await Workspace.prepare(folder, remote, **values)


async def test_contents_are_those_of_the_forge(tmp_path: Path, forge: FakeGitHub) -> None:
    """The token is sent to the forge alone, and new contents before the branch."""
    workspace = await of_forge(forge, tmp_path / "data")
    assert (workspace.path / "big.bin").read_bytes() == BIG
    assert [part.paths for part in workspace.missing_parts] == [("gone.bin",)]
    (workspace.path / "new.bin").write_bytes(NEW)
    snapshot = await workspace.snapshot("work")
    await workspace.publish(snapshot)
    item = store_content(tmp_path / "store", [NEW])[0]
    assert forge.world.lfs.objects[item.oid] == NEW
    assert forge.world.lfs.verified == [item.oid]
    assert forge.world.head(workspace.branch) == snapshot.commit
    # another job has them from there
    later = await of_forge(forge, tmp_path / "other", job=2, base=workspace.branch)
    assert (later.path / "new.bin").read_bytes() == NEW


@attack(
    "A server of Git LFS sends the worker to an address of its own network, or another content",
    surface="network",
    with_sandbox="the address is refused by the egress policy, and the content by its SHA-256",
)
async def test_a_server_of_lfs_reaches_no_other_address(tmp_path: Path, forge: FakeGitHub) -> None:
    forge.world.lfs.host = "127.0.0.2"
    with pytest.raises(Failure, match=r"127\.0\.0\.2"):
        await of_forge(forge, tmp_path / "data")
    forge.world.lfs.host = "localhost"
    forge.world.lfs.corrupt = True
    with pytest.raises(Failure, match="another content than") as failure:
        await of_forge(forge, tmp_path / "data")
    assert failure.value.code == "lfs"
    forge.world.lfs.corrupt = False
    assert (await of_forge(forge, tmp_path / "data")).path.joinpath("big.bin").read_bytes() == BIG


async def test_contents_are_those_of_a_forge_over_ssh(
    tmp_path: Path, forge: FakeGitHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its host tells where they are, and gives a login for them."""
    login = base64.b64encode(f"x-access-token:{forge.world.token}".encode()).decode()
    answer = {"href": f"{forge.url}/info/lfs", "header": {"Authorization": f"Basic {login}"}}
    asked = tmp_path / "asked"
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "ssh").write_text(SSH.format(asked=asked, answer=json.dumps(answer)))
    (programs / "ssh").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    path = f"{forge.world.repository}"
    remote = RepoSource(f"ssh://git@127.0.0.1{path}", HttpSettings(allow=("127.0.0.1",)))
    workspace = await Workspace.prepare(tmp_path / "data", remote, job=1, run=1, parts=LFS)
    assert (workspace.path / "big.bin").read_bytes() == BIG
    (workspace.path / "new.bin").write_bytes(NEW)
    await workspace.publish(await workspace.snapshot("work"))
    assert NEW in forge.world.lfs.objects.values()
    commands = [f"git-lfs-authenticate {path} {operation}" for operation in ("download", "upload")]
    assert asked.read_text().splitlines() == commands


async def test_contents_follow_a_repository_that_was_renamed(
    tmp_path: Path, source: Path, forge: FakeGitHub
) -> None:
    url = forge.url

    async def login() -> GitLogin:
        return GitLogin("x-access-token", forge.world.token)

    async def locate() -> str:
        return forge.url

    forge.world.rename("acme/paid")
    assert forge.url != url
    http = HttpSettings(allow=("127.0.0.1",))
    remote = RepoSource(url, http, login=login, locate=locate)
    workspace = await Workspace.prepare(tmp_path / "data", remote, job=1, run=1, parts=LFS)
    assert (workspace.path / "big.bin").read_bytes() == BIG
