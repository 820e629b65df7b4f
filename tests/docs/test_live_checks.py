"""The pages of channels list what is assumed of their services, and nothing else is untried."""

from __future__ import annotations

import re

import pytest

from tests.docs.live_checks import PAGES, live_checks, page
from tests.docs.pages import DOCS

REGENERATE = "regenerate it: python -m tests.docs.live_checks"
UNTRIED = re.compile(r"(?m)^\| *(?:assumption|part) *\||^#+ .*\b(?:[Nn]ot tried|Assumptions)\b.*$")
"""A list of assumptions, by its heading or the first line of its table."""


@pytest.mark.parametrize("name", PAGES)
def test_the_page_lists_every_assumption(name: str) -> None:
    text = PAGES[name].read_text(encoding="utf-8")
    assert page(name, text) == text, REGENERATE
    names = [check.name for check in live_checks(name).checks]
    assert len({*names}) == len(names)
    assert all(re.fullmatch("[a-z-]+", item) for item in names)


def test_no_other_list_of_assumptions_is_on_a_page() -> None:
    found = {
        path.name: UNTRIED.findall(path.read_text(encoding="utf-8")) for path in DOCS.glob("*.md")
    }
    expected = {path.name for path in PAGES.values()}
    assert {name for name, lines in found.items() if lines} == expected
    assert all(len(found[name]) == 1 for name in expected), found
