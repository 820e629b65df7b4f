"""The README's pictures can be taken; `make test` compares each screen of the dashboard."""

from __future__ import annotations

from pathlib import Path

from tests.docs.pictures import PLACE, take


async def test_pictures_can_be_taken(database_url: str, tmp_path: Path) -> None:
    config = tmp_path / "draftsman.toml"
    values = f'database_url = "{database_url}"\ndata_dir = "{tmp_path / "data"}"\n'
    config.write_text(f'{values}people.carol.roles = ["approver"]\n')
    await take(config, tmp_path / "pictures")
    pictures = {path.name: path.read_text("utf-8") for path in (tmp_path / "pictures").iterdir()}
    assert pictures.keys() == {path.name for path in PLACE.iterdir() if path.is_file()}
    assert "push draftsman/" in pictures["jobs.svg"]
    assert "files changed" in pictures["job.svg"]
    assert "safe fixes" in pictures["answer.svg"]
