"""`draftsman soak` detects a duplicate effect that it did not cause.

`make test` covers the parts: tests/soak_test, from a duplicate effect to the verdict and exit code
1.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from draftsman_testing import waits
from draftsman_testing.waits import until
from tests.acceptance.processes import Installation
from tests.acceptance.soak_runs import PATIENCE, SHORT_RUN, code_of, left, soak


@pytest.fixture
def installation(tmp_path: Path) -> Iterator[Installation]:
    """Provide an installation; a soak creates its own database."""
    installation = Installation(tmp_path / "here", None)
    yield installation
    installation.close()


async def test_duplicate_effect_fails_the_soak_and_keeps_its_folder(
    installation: Installation, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waits, "DEADLINE", PATIENCE)
    started = soak(installation, folder, *SHORT_RUN, "--seed", "5", "--workers", "1")

    async def effects() -> list[Path]:
        return [path for path in folder.glob("*/seed-5/outside/*/*-*-*") if path.suffix == ""]

    async def look() -> bool:
        return bool(await effects())

    await until(look, "an effect")
    effect = (await effects())[0]
    key, _ = effect.read_text().split()
    effect.with_name("somebody-elses-id").write_text(f"{key} another\n")
    assert await code_of(started) == 1, started.output_text
    number = effect.parent.name
    assert f"seed 5: D-{number}: effect {key} was created 2 times" in started.output_text
    assert "duplicate effects                  1\n" in started.output_text
    (seed_folder,) = folder.glob("*/seed-5")
    assert f"seed 5 failed; its database and logs: {seed_folder}" in started.output_text
    assert (seed_folder / "worker-1.log").stat().st_size > 0
    assert left(folder) == []
