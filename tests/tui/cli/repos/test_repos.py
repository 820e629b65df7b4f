"""`repos`, and requests that name a known repository."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from draftsman.runtime import Runtime
from tests.core.agent_runs.clones.lfs_repository import add_lfs_files
from tests.core.worker.agent_jobs import contents, git, make_repository
from tests.tui.cli.cli_runner import Cli

MAKEFILE = "check:\n\t@echo fine > made; test -f a.txt\ntest:\n\t@echo '2 failed'; exit 3\n"


def add_file(repo: Path, name: str, text: str) -> None:
    (repo / name).parent.mkdir(parents=True, exist_ok=True)
    (repo / name).write_text(text)
    git("add", "-A", cwd=repo)
    git("commit", "-qm", name, cwd=repo)


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    path = make_repository(tmp_path / "pay")
    add_file(path, "Makefile", MAKEFILE)
    return path


async def test_a_profile_is_proposed_and_run_in_a_clone_before_it_is_saved(
    cli: Cli, repo: Path, tmp_path: Path
) -> None:
    git("remote", "add", "origin", "https://t0ken@github.com/acme/pay.git", cwd=repo)
    before = contents(repo)
    added = await cli("repos", "add", repo)
    assert added.out.splitlines()[-1].startswith("added acme/pay (make) from ")
    assert contents(repo) == before, "no command ran in the user's checkout"
    assert list((tmp_path / "data" / "runs").iterdir()) == []
    output = json.loads((await cli("repos", "show", "pay", "--json")).out)
    [profile] = output["profiles"]
    commands = [(entry["name"], entry["required"]) for entry in profile["validation_commands"]]
    assert commands == [("check", True), ("test", False)], (
        "a validator that already fails is not required"
    )
    results = [(entry["name"], entry["passed"], entry["summary"]) for entry in profile["checks"]]
    assert results == [("check", True, "exit 0"), ("test", False, "2 failed")]
    assert profile["checked_commit"] == git("rev-parse", "HEAD", cwd=repo)
    assert (output["host"], output["remote_url"]) == ("github.com", str(repo))
    assert "t0ken" not in json.dumps(output)


async def test_what_jobs_work_without_is_said_when_a_repository_is_added(
    cli: Cli, repo: Path, tmp_path: Path
) -> None:
    add_lfs_files(repo)
    text = "jobs work without the contents of {} of Git LFS"
    assert text.format("2 files") in (await cli("repos", "add", repo)).err
    (tmp_path / "profile.json").write_text('{"lfs": true}')
    file = ("--profile", str(tmp_path / "profile.json"), "--replace")
    assert text.format("1 file") in (await cli("repos", "add", repo, *file)).err
    assert text.format("1 file") in (await cli("repos", "check", "pay")).err


async def test_a_check_reports_failed_required_commands(cli: Cli, repo: Path) -> None:
    await cli("repos", "add", repo)
    assert "passed" in (await cli("repos", "check", "pay")).out
    (repo / "a.txt").unlink()
    git("commit", "-qam", "gone", cwd=repo)
    failed = await cli("repos", "check", "pay")
    failed.refused(1, "pay: check failed")
    [line] = [line for line in failed.out.splitlines() if line.startswith("check")]
    assert ("failed" in line, "required" in line) == (True, True)


GRADLE = """#!/bin/sh
case $2 in
testClasses) test ! -f offline || { echo no route; exit 7; }; touch tools ;;
check) test -f tools || { echo 2 failed; exit 1; } ;;
esac
"""


async def test_the_tools_are_set_up_by_the_command_of_a_lock_file(
    cli: Cli, repo: Path, tmp_path: Path
) -> None:
    add_file(repo, ".gitignore", "tools\n")
    (repo / "gradlew").touch(mode=0o755)
    add_file(repo, "gradlew", GRADLE)
    added = await cli("repos", "add", repo, "--json")
    setup = {"command": "./gradlew --no-daemon testClasses", "file": "gradlew"}
    assert added.json["setup"] == setup | {"saved": True, "problem": None}
    assert (added.json["enforced"], added.json["profile"]["env"]) == (["tests"], {})
    [saved] = added.json["profile"]["setup_commands"]
    assert saved["command"] == ["./gradlew", "--no-daemon", "testClasses"]
    assert (await cli("repos", "check", "pay")).code == 0
    again = ("repos", "add", "pay", "--replace")
    without = await cli(*again, "--setup", "")
    assert "nothing is enforced: no check passes on the unchanged repository" in without.err
    assert "not enforced: tests (2 failed)" in without.err
    assert f"to do so: draftsman {' '.join(again)} --setup COMMAND" in without.err
    add_file(repo, "offline", "")
    offline = await cli(*again)
    assert (offline.code, offline.out.splitlines()[-1][:16]) == (0, "added pay (java)")
    problem = "the setup ./gradlew --no-daemon testClasses failed: no route"
    command = f"draftsman {' '.join(again)} --setup './gradlew --no-daemon testClasses'"
    assert f"{problem}; to set up its tools: {command}" in offline.err
    given = await cli(*again, "--setup", "./gradlew --no-daemon testClasses")
    given.refused(1, f"not saved: {problem}; use a command that works in a clone, or --no-check")
    shell = await cli(*again, "--setup", "true && touch tools")
    assert "each clone is set up by: true && touch tools" in shell.err
    (await cli(*again, "--setup", "x", "--profile", repo / "a.txt")).refused(2, "--setup cannot")


async def test_invalid_repositories_are_refused_in_one_line(
    cli: Cli, repo: Path, tmp_path: Path
) -> None:
    for name in ("nothing", "empty"):
        (tmp_path / name).mkdir()
    git("init", "-q", ".", cwd=tmp_path / "empty")
    for place, code, message in (
        (tmp_path / "nothing", 2, "not in a git repository"),
        (tmp_path / "empty", 1, "has no commits; create a first commit"),
        (tmp_path / "absent", 2, "directory not found"),
        ("https://u:t0ken@github.com/a/b", 2, "may not contain a password"),
        ("ftp://host/a/b", 2, "unsupported URL scheme ftp://"),
        ("https://127.0.0.1:1/a/b", 1, "is a loopback address"),
        ("nobody", 3, "unknown repository 'nobody'; known: none"),
    ):
        (await cli("repos", "add", place)).refused(code, message)
    await cli("repos", "add", repo)
    (await cli("repos", "add", repo)).refused(4, "pay already exists")
    duplicate = make_repository(tmp_path / "elsewhere")
    (await cli("repos", "add", duplicate, "--name", "PAY")).refused(4, "pay already exists")
    assert (await cli("repos", "add", duplicate, "--name", "other")).code == 0


async def test_a_monorepo_folder_gets_a_profile_from_a_file(
    cli: Cli, repo: Path, tmp_path: Path
) -> None:
    add_file(repo, "api/Makefile", "test:\n\t@test -f here\n")
    add_file(repo, "api/here", "")
    added = await cli("repos", "add", repo / "api")
    assert added.out.splitlines()[-1].startswith("added pay//api (make) from ")
    assert (await cli("repos", "check", "pay//api")).code == 0
    (await cli("repos", "add", repo, "--path", "../x")).refused(2, "a folder inside")
    (await cli("repos", "add", repo, "--path", "web")).refused(2, "no folder 'web'")
    file = tmp_path / "profile.json"
    failing = {"validation_commands": [{"name": "no", "command": ["false", "--xml={report}"]}]}
    file.write_text(json.dumps(failing))
    refused = await cli("repos", "add", repo, "--profile", file)
    refused.refused(1, "not saved")
    assert (await cli("repos", "add", repo, "--profile", file, "--no-check")).code == 0
    assert "validation no: false --xml=/dev/null" in (await cli("repos", "show", "pay")).out
    file.write_text((await cli("repos", "show", "pay", "--json")).out)
    (await cli("repos", "add", repo, "--profile", file)).refused(4, "--replace")
    file.write_text('{"validation": []}')
    (await cli("repos", "add", repo, "--profile", file, "--replace")).refused(2, "unknown key")
    file.write_text('{"agent": "tidy"}')
    assert (await cli("repos", "add", "pay", "--profile", file, "--replace")).code == 0


async def test_a_tree_without_validators_keeps_those_of_the_configuration(
    cli: Cli, tmp_path: Path
) -> None:
    plain = make_repository(tmp_path / "notes")
    message = (
        "no validation commands; agents use those in [profile] of the configuration: lint, format"
    )
    added = await cli("repos", "add", plain)
    assert (added.code, message in added.err) == (0, True)
    assert message in (await cli("repos", "show", "notes")).out
    assert message in (await cli("repos", "check", "notes")).err
    with cli.config.open("a") as file:
        file.write('\n[profiles."notes"]\nvalidation_commands = []\n')
    message = (
        'no validation commands, and none in [profiles."notes"] of the configuration;'
        " see: draftsman help --page repos#profiles"
    )
    assert message in (await cli("repos", "check", "notes")).err


async def test_labels_default_and_removal_of_a_repository(cli: Cli, repo: Path) -> None:
    empty = await cli("repos", "list")
    assert (empty.out, "repos add PATH|URL" in empty.err) == ("", True)
    await cli("repos", "add", repo)
    assert "label money mapped to pay" in (await cli("repos", "map", "pay", "--label", "money")).out
    assert (await cli("repos", "map", "pay", "--default")).code == 0
    assert "money" in (await cli("repos", "list")).out
    [listed] = json.loads((await cli("repos", "list", "--json")).out)
    assert (listed["mappings"][0]["label"], listed["is_default"]) == ("money", True)
    (await cli("repos", "map", "pay")).refused(2, "--label NAME, --label-id ID or --default")
    (await cli("repos", "unmap")).refused(2, "specify either LABEL or --default")
    assert (await cli("repos", "unmap", "Money")).code == 0
    (await cli("repos", "unmap", "Money")).refused(3, "no mapping of label 'Money'")
    (await cli("repos", "remove", "pay")).refused(2, "use --yes")
    assert (await cli("repos", "remove", "pay", "--yes")).code == 0
    (await cli("repos", "show", "pay")).refused(3, "unknown repository 'pay'; known: none")


async def test_a_request_names_a_known_repository(cli: Cli, rt: Runtime, repo: Path) -> None:
    git("remote", "add", "origin", "https://github.com/acme/pay.git", cwd=repo)
    await cli("repos", "add", repo, "--no-check")
    submitted = await cli("submit", "--repo", "acme/pay", "Tidy up", "--json")
    job = await rt.read_model.job(json.loads(submitted.out)["number"])
    assert job.payload["repo"]["source"] == str(repo)
    assert f"acme/pay · {repo}" in (await cli("show", job.name)).out
    for address in (repo, "https://github.com/Acme/pay", "git@github.com:acme/pay.git"):
        assert (await cli("submit", "--repo", address, "Tidy up")).code == 0
    named = (await cli("jobs", "--repo", "acme/pay", "--json")).json
    owners = [entry["request"]["repo_owner"] for entry in named]
    assert owners == ["acme"] * 4, "every URL has the same name"
    await cli("submit", "--repo", "https://gitlab.example/acme/pay", "Tidy up")
    for name, jobs in {"github.com/Acme/pay": 4, "gitlab.example/acme/pay": 1, "pay": 5}.items():
        assert len((await cli("jobs", "--repo", name, "--json")).json) == jobs, name
    refused = await cli("submit", "--repo", "acme/shop", "Tidy up")
    refused.refused(2, "--repo acme/shop: no directory or repository with this name")
    assert "known repositories: acme/pay" in refused.err
    secret = await cli("submit", "--repo", "https://t0ken@github.com/acme/pay", "Tidy up")
    secret.refused(2, "a repository URL is stored and displayed")
    assert "t0ken" not in secret.err
