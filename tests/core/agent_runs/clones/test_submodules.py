"""Submodules in clones: their files, which are read-only, and the sources that they may have."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from draftsman.agent_runs.clones.clone_parts import CloneParts
from draftsman.agent_runs.clones.source import RepoSource
from draftsman.agent_runs.clones.submodules import absolute_url, submodules_of
from draftsman.agent_runs.clones.workspace import Workspace
from draftsman.errors import Failure
from draftsman.settings.sandbox import SandboxSettings
from tests.attacks.catalog import attack
from tests.core.agent_runs.clones.test_workspace import prepare
from tests.core.worker.agent_jobs import git, make_repository
from tests.support.cases import cases

PARTS = CloneParts(submodules=RepoSource.of)
OWN = "a submodule, which is read-only"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Give a repository with a submodule `libs/one`, beside that of the submodule."""
    library = make_repository(tmp_path / "library", of_library="1\n")
    (library / ".gitignore").write_text("*.o\n")
    git("add", "-A", cwd=library)
    git("commit", "-qm", "ignore", cwd=library)
    repo = make_repository(tmp_path / "source", a="one\n")
    add_submodule(repo, "libs/one", "../library", git("rev-parse", "HEAD", cwd=library))
    return repo


def add_submodule(repo: Path, path: str, url: str, commit: str) -> None:
    """Commit a submodule, as `git submodule add` does."""
    with (repo / ".gitmodules").open("a") as file:
        file.write(f'[submodule "{path}"]\n\tpath = {path}\n\turl = {url}\n')
    git("add", ".gitmodules", cwd=repo)
    git("update-index", "--add", "--cacheinfo", f"160000,{commit},{path}", cwd=repo)
    git("commit", "-qm", f"submodule {path}", cwd=repo)


def reasons(workspace: Workspace) -> list[str]:
    return [part.text for part in workspace.missing_parts]


async def test_the_files_of_a_submodule_are_there_and_no_work(tmp_path: Path, source: Path) -> None:
    workspace = await prepare(tmp_path / "data", source, parts=PARTS, includes_all=True)
    workspace = await workspace.with_sandbox(SandboxSettings(mode="off"))
    library = workspace.path / "libs" / "one"
    assert (library / "of_library.txt").read_text() == "1\n"
    assert not (library / ".git").exists()
    assert (library / "of_library.txt").stat().st_mode & 0o222 == 0
    assert reasons(workspace) == []
    (library / "ignored.o").write_text("x")
    os.utime(library, (1, 1))
    snapshot = await workspace.snapshot("nothing")
    assert (snapshot.files_changed, snapshot.left_out) == (0, ())
    (library / "of_library.txt").chmod(0o644)
    (library / "of_library.txt").write_text("changed\n")
    (workspace.path / "a.txt").write_text("two\n")
    snapshot = await workspace.snapshot("work")
    assert (snapshot.left_out, snapshot.included) == ((f"libs/one ({OWN})",), {})
    assert [file.path for file in await workspace.changed_files(snapshot.commit)] == ["a.txt"]
    # the clone in which the work is validated has the files of the commit
    fresh = await prepare(tmp_path / "data", source, run=2, base=snapshot.commit, parts=PARTS)
    assert (fresh.path / "libs" / "one" / "of_library.txt").read_text() == "1\n"
    (fresh.path / "libs" / "one" / "new").write_text("x")
    assert (await fresh.snapshot("new")).left_out == (f"libs/one ({OWN})",)
    mirrors = sorted((tmp_path / "data" / "mirrors").iterdir())
    assert len(mirrors) == 2
    for item in (workspace, fresh):
        await item.remove()
    for mirror in mirrors:
        assert "submodule" not in git("for-each-ref", cwd=mirror)


@pytest.mark.parametrize("place", ["moved", "link", "parent", "file"])
async def test_a_submodule_that_a_program_replaces_is_named(
    tmp_path: Path, source: Path, place: str
) -> None:
    workspace = await prepare(tmp_path / "data", source, parts=PARTS)
    libs = workspace.path / "libs"
    if place == "parent":
        libs.rename(workspace.path / "others")
        libs.symlink_to("others")
    else:
        (libs / "one").rename(libs / "two")
        if place == "link":
            (libs / "one").symlink_to("/")
        elif place == "file":
            (libs / "one").write_text("x")
    snapshot = await workspace.snapshot("work")
    assert f"libs/one ({OWN})" in snapshot.left_out


async def test_without_the_choice_of_the_profile_they_are_named(
    tmp_path: Path, source: Path
) -> None:
    workspace = await prepare(tmp_path / "data", source)
    assert reasons(workspace) == ["the submodule libs/one: set submodules = true in its profile"]
    assert list((workspace.path / "libs" / "one").iterdir()) == []


async def test_a_submodule_that_cannot_be_had_is_named(tmp_path: Path, source: Path) -> None:
    add_submodule(source, "gone", "../gone", "1" * 40)
    add_submodule(source, "lost", "../library", "2" * 40)
    git("update-index", "--add", "--cacheinfo", f"160000,{'3' * 40},bare", cwd=source)
    git("commit", "-qm", "no URL", cwd=source)
    workspace = await prepare(tmp_path / "data", source, parts=PARTS)
    bare, gone, lost = reasons(workspace)
    assert bare == "the submodule bare: git: it has no URL in .gitmodules"
    assert gone.startswith("the submodule gone: git: ")
    assert gone.endswith("is not a folder; use the top folder of a repository")
    assert lost.startswith("the submodule lost: git: fetch: ")
    assert (workspace.path / "libs" / "one" / "of_library.txt").exists()


@attack(
    "A repository names a folder of the worker, or a helper of git, as its submodule",
    surface="repository",
    with_sandbox="the submodule is left out and named with the reason; nothing of it is read",
)
async def test_a_repository_names_no_other_folder_of_this_machine(
    tmp_path: Path, source: Path
) -> None:
    """Of a URL none, of a folder only those of its owner."""
    head = git("rev-parse", "HEAD", cwd=tmp_path / "library")
    add_submodule(source, "helper", "ext::sh -c 'touch /tmp/owned'", head)
    workspace = await prepare(tmp_path / "data", source, parts=PARTS)
    [helper] = reasons(workspace)
    assert helper.startswith("the submodule helper: git: ")
    [submodule] = [
        item
        for item in await submodules_of(workspace.mirror, workspace.base_sha)
        if item.path == b"libs/one"
    ]
    remote = RepoSource("https://forge.example/acme/pay.git")
    named = replace(submodule, url=str(tmp_path / "library"))
    with pytest.raises(Failure, match="is a folder of this machine"):
        named.source(remote, RepoSource.of)
    if os.geteuid() == 0:
        os.chown(tmp_path / "library", 65534, 65534)
        with pytest.raises(Failure, match="is a folder of this machine"):
            submodule.source(RepoSource.of(str(source)), RepoSource.of)


@pytest.fixture
def outside(tmp_path: Path) -> Iterator[Path]:
    """Give a folder outside of the clone, whose content and modes stay as they are."""
    folder = tmp_path / "outside"
    folder.mkdir(mode=0o700)
    kept = folder / "kept"
    kept.write_text("x")
    kept.chmod(0o600)
    yield folder
    assert [path.name for path in folder.iterdir()] == ["kept"]
    assert (folder.stat().st_mode & 0o777, kept.stat().st_mode & 0o777) == (0o700, 0o600)


@attack(
    "The agent replaces the folder above a submodule by a link out of its clone",
    surface="tree",
    with_sandbox="the next run writes nothing there; the submodule is left out and named",
)
@pytest.mark.parametrize("kind", ["link", "file"])
async def test_no_submodule_is_checked_out_through_a_link(
    tmp_path: Path, source: Path, outside: Path, kind: str
) -> None:
    """The worker checks submodules out into the tree that the agent has saved."""
    workspace = await prepare(tmp_path / "data", source, parts=PARTS)
    libs = workspace.path / "libs"
    shutil.rmtree(libs)
    if kind == "link":
        libs.symlink_to(outside)
    else:
        libs.write_text("x")
    bundle = await workspace.bundle(await workspace.snapshot("replaced"))
    again = await prepare(tmp_path / "data", source, run=2, bundle=bundle, parts=PARTS)
    await again.with_sandbox(SandboxSettings(mode="off"))
    [reason] = reasons(again)
    assert reason.startswith(f"the submodule libs/one: git: its folder is a {kind}")


@pytest.mark.parametrize("at", ["libs", "libs/one"])
async def test_no_submodule_is_protected_through_a_link(
    tmp_path: Path, source: Path, outside: Path, at: str
) -> None:
    """Commands of the repository run before its files are protected again."""
    workspace = await prepare(tmp_path / "data", source, parts=PARTS)
    (workspace.path / at).rename(tmp_path / "moved")
    (workspace.path / at).symlink_to(outside)
    await workspace.with_sandbox(SandboxSettings(mode="off"))


@cases(
    ("parent", "url", "absolute"),
    [
        ("https://forge.example/acme/pay.git", "../lib.git", "https://forge.example/acme/lib.git"),
        ("https://forge.example/acme/pay", "../../o/lib", "https://forge.example/o/lib"),
        ("git@forge.example:acme/pay.git", "../lib.git", "git@forge.example:acme/lib.git"),
        ("/srv/pay", "../lib", "/srv/lib"),
        ("/srv/pay", "./lib", "/srv/pay/lib"),
        ("/srv/pay", "https://forge.example/a/b", "https://forge.example/a/b"),
    ],
)
def test_a_url_may_be_relative_to_that_of_the_repository(
    parent: str, url: str, absolute: str
) -> None:
    assert absolute_url(parent, url) == absolute
