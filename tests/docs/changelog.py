"""Moves the entries in changes/ into the newest version of CHANGELOG.md, at its release.

python -m tests.docs.changelog
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tests.docs.code_names import ROOT

CHANGELOG: Final = ROOT / "CHANGELOG.md"
VERSION: Final = re.compile(r"^## (\S+)(?: \((\w[^)]*)\))?$", re.MULTILINE)
_THEME: Final = re.compile(r"^### (.+)$", re.MULTILINE)
_ENTRIES: Final = re.compile(r"- \S.*(?:\n(?:- |  )\S.*)*")


def changes() -> dict[Path, str]:
    """Return the text of each file in changes/."""
    return {path: path.read_text("utf-8") for path in sorted((ROOT / "changes").glob("*"))}


def released(changelog: str, changes: Mapping[Path, str]) -> str:
    """Return the changelog with these changes in its newest version, which is then released."""
    newest, *older = VERSION.finditer(changelog)
    assert not changes or newest[2] == "unreleased", (
        f"{newest[1]} is released: begin the next version in {CHANGELOG.name}, '## X (unreleased)'"
    )
    end = older[0].start() if older else len(changelog)
    introduction, themes = _themes(changelog[newest.end() : end])
    entries = dict.fromkeys(_THEME.findall(changelog), "") | themes
    for path, text in changes.items():
        before, added = _themes(text)
        is_themed = added and not before
        assert is_themed, f"{path} must begin with a theme, such as '### Slack'"
        for theme, entry in added.items():
            assert theme in entries, f"{path}: no theme {theme!r}; use {', '.join(entries)}"
            assert _ENTRIES.fullmatch(entry), f"{path}: begin with '- ', and indent by two spaces"
            entries[theme] = f"{entries[theme]}\n{entry}".strip()
    sections = [f"### {theme}\n\n{entry}" for theme, entry in entries.items() if entry]
    head = changelog[: newest.start()].strip()
    tail = changelog[end:].strip()
    return (
        "\n\n".join(filter(None, [head, f"## {newest[1]}", introduction, *sections, tail])) + "\n"
    )


def _themes(text: str) -> tuple[str, dict[str, str]]:
    """Return the text before the first theme, and the entries of each."""
    before, *parts = (part.strip() for part in _THEME.split(text))
    return before, dict(zip(parts[::2], parts[1::2], strict=True))


if __name__ == "__main__":
    moved = changes()
    CHANGELOG.write_text(released(CHANGELOG.read_text("utf-8"), moved), "utf-8")
    for path in moved:
        path.unlink()
