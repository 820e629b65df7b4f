"""The command that takes the gallery."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.gallery.__main__ import png_writer


def test_pictures_without_their_program_end_in_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SystemExit, match="--png needs rsvg-convert; install it"):
        png_writer(tmp_path / "pictures")
    assert not (tmp_path / "pictures").exists()
