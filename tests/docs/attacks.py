"""Writes the table of docs/attacks.md from the catalog of attack tests.

python -m tests.docs.attacks
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Final, get_args

from tests.attacks.catalog import CATALOG, OPEN, Attack, Surface
from tests.docs.pages import DOCS, filled

PAGE: Final = DOCS / "attacks.md"
TESTS: Final = Path(__file__).resolve().parents[1]
REGISTERS: Final = re.compile(r"^from tests\.attacks\.catalog import \(?.*\battack\b", re.MULTILINE)
"""The import of a module with attacks."""
_EFFECT: Final = {True: "**yes**", False: "no", None: ""}


def catalog() -> list[Attack]:
    """Return every registered attack, by surface and then in the order of the files."""
    for file in sorted(TESTS.rglob("*.py")):
        if REGISTERS.search(file.read_text(encoding="utf-8")):
            import_module(".".join(file.relative_to(TESTS.parent).with_suffix("").parts))
    surfaces = get_args(Surface)
    return sorted(CATALOG, key=lambda attack: (surfaces.index(attack.surface), attack.test))


def page(text: str) -> str:
    """Return the page with a current table."""
    return filled(text, _table(catalog()))


def _table(attacks: list[Attack]) -> Iterator[str]:
    modes = " | ".join(f"`{mode}`" for mode in OPEN)
    yield f"| | attack | surface | with sandbox | without sandbox | `off` | {modes} | test |"
    yield f"|---|---|---|---|---|---|{'---|' * len(OPEN)}---|"
    for number, attack in enumerate(attacks, 1):
        test = f"`{attack.test.removeprefix('tests/attacks/')}`"
        effects = " | ".join(_EFFECT[works] for works in _effects(attack))
        outcomes = f"{attack.with_sandbox} | {attack.without_sandbox} | {effects}"
        yield f"| {number} | {attack.title} | {attack.surface} | {outcomes} | {test} |"


def _effects(attack: Attack) -> list[bool | None]:
    return [attack.effect, *(attack.works_in(mode) for mode in OPEN)]


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
