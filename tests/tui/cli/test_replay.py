"""`replay`: today's code against the recorded runs of a job."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from draftsman import Done, Outcome, RunContext
from draftsman.job_types import declaration
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from tests.core.worker.workers import running_worker, runtime_with, wait_for_end
from tests.tui.cli.cli_runner import Cli

CODE = """
from draftsman import BlockingRunContext, job

@job("replayed")
def replayed(ctx: BlockingRunContext) -> dict[str, int]:
    return {"rows": ctx.step("{STEP}", lambda _: 3)}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(declaration, "declared_types", {})
    yield tmp_path
    for name in ("same_jobs", "other_jobs"):
        sys.modules.pop(name, None)


async def _replayed(ctx: RunContext) -> Outcome:
    return Done({"rows": await ctx.step("read", lambda _: 3)})


async def test_the_code_of_an_app_is_compared_with_what_ran(
    rt: Runtime, make: Factory, cli: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = await make.queued(type="replayed", queue="default")
    async with running_worker(runtime_with(rt), {"replayed": _replayed}):
        await wait_for_end(rt, number)
    (folder / "same_jobs.py").write_text(CODE.replace("{STEP}", "read"), encoding="utf-8")
    (folder / "other_jobs.py").write_text(CODE.replace("{STEP}", "load"), encoding="utf-8")
    (folder / "pyproject.toml").write_text('[tool.draftsman]\napp = "same_jobs"\n')
    same = await cli("replay", f"D-{number}", "--app", "same_jobs")
    assert (same.code, same.out) == (0, f"D-{number}: completes\n  as it ran\n")
    monkeypatch.setattr(declaration, "declared_types", {})
    other = await cli("replay", f"D-{number}", "--app", "other_jobs")
    assert other.code == 1
    assert other.out == (
        f"D-{number}: runs the step 'load'\n  runs the step 'load', which no run did\n"
    )
    monkeypatch.setattr(declaration, "declared_types", {})
    unknown = (await cli("replay", f"D-{number}")).refused(2)
    assert "has the type replayed, whose code is not here; name its module with --app" in unknown


async def test_jobs_of_draftsmans_own_types_are_not_replayed(make: Factory, cli: Cli) -> None:
    number = await make.queued(type="http_request", payload={"url": "https://example.org"})
    refused = (await cli("replay", f"D-{number}")).refused(2)
    assert "has the type http_request, whose code is not here" in refused
