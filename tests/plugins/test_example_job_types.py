"""The package of `docs/examples/job_types`: installed, its types are found and run."""

from __future__ import annotations

from pathlib import Path

import pytest

from draftsman.job_types import declaration
from draftsman.job_types.app import handlers_of, load_types
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from tests.core.worker.workers import (
    running_worker,
    runtime_with,
    wait_for_end,
    wait_for_question,
)
from tests.plugins import example


async def test_the_types_of_an_installed_package_are_found_and_run(
    rt: Runtime, make: Factory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(declaration, "declared_types", {})
    example.install(tmp_path, example.JOB_TYPES)
    with example.importable(tmp_path):
        types = load_types(None)
    assert {name: type.place for name, type in types.items()} == {
        "greet": "draftsman_greetings.jobs:greet"
    }
    number = await make.queued(
        type="greet", queue="default", payload={"name": "Anna", "language": "de"}
    )
    async with running_worker(runtime_with(rt), handlers_of(types, {})):
        await wait_for_question(rt, number)
        await make.answer(number, "yes")
        job = await wait_for_end(rt, number)
    assert job.result == {"text": "Hallo, Anna!", "sent": True}
