"""`draftsman soak` detects a duplicate effect that it did not cause.

`make test` covers the parts: tests/tui/soak, from a doubled effect to the verdict and exit code 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.processes import Installation
from tests.acceptance.soak_runs import PATIENCE, SHORT_RUN, code_of, left, soak
from tests.support import waits
from tests.support.waits import until


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Installation]:
    """Give a place; a soak makes its own database."""
    place = Installation(tmp_path / "here", None)
    yield place
    place.close()


async def test_a_doubled_effect_fails_it_and_keeps_its_folder(
    place: Installation, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waits, "DEADLINE", PATIENCE)
    started = soak(place, folder, *SHORT_RUN, "--seed", "5", "--workers", "1")

    async def made() -> list[Path]:
        return [path for path in folder.glob("*/seed-5/outside/*/*-*-*") if path.suffix == ""]

    async def look() -> bool:
        return bool(await made())

    await until(look, "an effect")
    effect = (await made())[0]
    key, _ = effect.read_text().split()
    effect.with_name("somebody-elses-id").write_text(f"{key} another\n")
    assert await code_of(started) == 1, started.output_text
    number = effect.parent.name
    assert f"seed 5: D-{number}: effect {key} was made 2 times" in started.output_text
    assert "duplicate effects                  1\n" in started.output_text
    (kept,) = folder.glob("*/seed-5")
    assert f"seed 5 failed; its database and logs: {kept}" in started.output_text
    assert (kept / "worker-1.log").stat().st_size > 0
    assert left(folder) == []
