"""`diff` and `artifacts`: files are returned unchanged."""

from __future__ import annotations

import base64
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from draftsman.jobs.runs.run import ClaimedJob
from draftsman.runtime import Runtime
from draftsman_testing.factories import GATE, Factory
from draftsman_testing.people import People
from tests.core.worker.agent_jobs import job_at_gate
from tests.tui.cli.cli_runner import COMMAND, Cli, Terminal

PATCH = b"diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+n\xffew\n"
BINARY = bytes(range(256)) * 9


@pytest.fixture
async def work(make: Factory, rt: Runtime) -> ClaimedJob:
    """Provide a job with a patch, a binary file, and a file with a malicious name."""
    work = await make.running()
    await rt.changes.store(work.lease, PATCH)
    await rt.checkpoints.artifact(work.lease, "data.bin", "file", BINARY)
    await rt.checkpoints.artifact(work.lease, "../../evil", "file", b"evil")
    return work


def _bytes(cli: Cli, *arguments: str) -> bytes:
    command = [*COMMAND, "--config", str(cli.config), *arguments]
    return subprocess.run(command, check=True, capture_output=True).stdout


async def test_an_artifact_is_printed_byte_by_byte(cli: Cli, work: ClaimedJob) -> None:
    assert _bytes(cli, "diff", work.name) == PATCH
    assert _bytes(cli, "artifacts", "get", work.name, "data.bin") == BINARY
    assert _bytes(cli, "artifacts", "get", work.name, "data.bin", "-o", "-") == BINARY


async def test_an_artifact_is_written_to_the_given_path(
    cli: Cli, work: ClaimedJob, tmp_path: Path
) -> None:
    there = tmp_path / "out"
    there.mkdir()
    done = await cli("artifacts", "get", work.name, "data.bin", "-o", there / "d")
    assert (done.out, done.err) == ("", f"saved {there / 'd'} (2.3 kB)\n")
    document = (await cli("artifacts", "get", work.name, "../../evil", "-o", there, "--json")).json
    assert document["path"] == str(there / "evil")
    assert {file.name: file.read_bytes() for file in there.iterdir()} == {
        "d": BINARY,
        "evil": b"evil",
    }
    done = await cli("artifacts", "get", work.name, "data.bin", "-o", "/no/such/place")
    done.refused(2, "/no/such/place: No such file")


async def test_artifacts_are_listed(cli: Cli, work: ClaimedJob, make: Factory) -> None:
    lines = (await cli("artifacts", work.name)).out.splitlines()
    assert [line.split()[:3] for line in lines[1:]] == [
        ["changes.patch", "patch", f"{len(PATCH)}"],
        ["data.bin", "file", "2.3"],
        ["../../evil", "file", "4"],
    ]
    document = (await cli("artifacts", "list", work.name, "--json")).json
    assert [(artifact["name"], artifact["size"]) for artifact in document][1] == (
        "data.bin",
        len(BINARY),
    )
    number = await make.queued()
    assert f"D-{number} has no artifacts" in (await cli("artifacts", "list", number)).err


async def test_json_has_text_as_text_and_bytes_as_base64(cli: Cli, work: ClaimedJob) -> None:
    document = (await cli("artifacts", "get", work.name, "../../evil", "--json")).json
    assert document["content"] == "evil"
    document = (await cli("diff", work.name, "--json")).json
    assert base64.b64decode(document["content_base64"]) == PATCH


async def test_a_missing_artifact_is_reported_with_the_existing_names(
    cli: Cli, work: ClaimedJob, make: Factory
) -> None:
    done = await cli("artifacts", "get", work.name, "nope")
    done.refused(3, "has no artifact 'nope'", "changes.patch")
    number = await make.queued()
    (await cli("diff", number)).refused(1, f"D-{number} has no changes so far")
    (await cli("artifacts", "gte", work.name)).refused(2, "did you mean get?")


async def test_the_diff_of_an_approval_is_that_of_the_run_that_asked(
    cli: Cli, rt: Runtime, make: Factory, people: People, tmp_path: Path
) -> None:
    changed = {"x.py": "new\n"}
    number, patch = await job_at_gate(rt, make, tmp_path, {"x.py": "old\n"}, changed)
    assert b"-old\n+new\n" in patch
    shown = (await cli("questions", number)).out
    assert f"  1 file changed, +1 -1\n  changes: draftsman diff D-{number}/1\n" in shown
    assert _bytes(cli, "diff", f"D-{number}/1") == patch
    await make.decide(number, True, people.carol)
    second = await make.running(number)
    await rt.changes.store(second.lease, b"")
    shown = (await cli("show", second.name)).out
    files = shown[shown.index("\nArtifacts\n") :].splitlines()[2:4]
    assert [file.split("  ")[1:-1] for file in files] == [
        ["changes.patch", "patch", f"{len(patch)} B", "run 1"],
        ["changes.patch", "no changes so far", "run 2"],
    ]
    await rt.asking.ask(second.lease, GATE.model_copy(update={"key": "other"}))
    (await cli("diff", f"D-{number}/2")).refused(1, f"D-{number}/2 has no changes so far")
    (await cli("diff", number)).refused(1, f"D-{number} has no changes so far")
    await check_since(cli, number, patch)
    assert _bytes(cli, "diff", f"D-{number}/1") == patch
    await make.decide(number, True, people.carol, 2)
    third = await make.running(number)
    await rt.checkpoints.artifact(third.lease, "changes.txt", "file", PATCH)
    await rt.asking.ask(third.lease, GATE.model_copy(update={"key": "third"}))
    assert "diff" not in (await cli("questions", number)).out.replace(f"diff D-{number}", "")
    (await cli("diff", f"D-{number}/3")).refused(
        1, f"D-{number}/3 has no diff; only jobs that change a repository have one"
    )
    (await cli("diff", f"D-{number}/9")).refused(3, f"there is no question D-{number}/9")


async def check_since(cli: Cli, number: int, patch: bytes) -> None:
    """Check the second question of a job, which reverts the change that the first approved."""
    shown = (await cli("questions", number)).out
    assert f"  no changes; since D-{number}/1: reverted\n" in shown
    assert f"  changes since D-{number}/1: draftsman diff D-{number}/2 --since-approval\n" in shown
    reverted = b"-new\n+old\n"
    for arguments in (
        ("diff", f"D-{number}/2", "--since-approval"),
        ("diff", f"D-{number}", "--since", f"D-{number}/1"),
    ):
        assert reverted in _bytes(cli, *arguments)
    document = (await cli("diff", f"D-{number}/2", "--since-approval", "--json")).json
    assert (document["question"], document["since"]) == (f"D-{number}/2", f"D-{number}/1")
    assert reverted.decode() in document["content"]
    same = await cli("diff", f"D-{number}/1", "--since", f"D-{number}/1")
    assert (same.out, same.err) == ("", f"no changes since D-{number}/1\n")
    (await cli("diff", f"D-{number}/1", "--since-approval")).refused(
        1, f"nothing was reviewed before D-{number}/1; for all changes: draftsman diff D-{number}/1"
    )
    (await cli("diff", number, "--since", number)).refused(2, "--since requires a question")
    (await cli("diff", number, "--since", "D-999/1")).refused(3, "D-999")
    both = ("--since", f"D-{number}/1", "--since-approval")
    (await cli("diff", number, *both)).refused(2, "cannot be combined")


async def test_on_a_terminal_a_patch_has_colors_and_bytes_are_refused(
    work: ClaimedJob, terminal: Callable[..., Terminal]
) -> None:
    screen = terminal("diff", work.name)
    assert screen.end() == 0
    assert "\x1b[31m-old" in screen.screen
    assert r"+n\u{dcff}ew" in screen.screen
    screen = terminal("artifacts", "get", work.name, "data.bin")
    assert screen.end() == 1
    assert "is a binary file; use -o FILE" in screen.plain
