"""The page of attacks lists the tests that perform them."""

from __future__ import annotations

from tests.docs.attacks import PAGE, catalog, page

PROMISED = 40


def test_the_page_lists_the_catalog() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert page(text) == text, "regenerate it: python -m tests.docs.attacks"


def test_every_attack_is_listed_once() -> None:
    titles = [attack.title for attack in catalog()]
    assert len(titles) == len(set(titles)) >= PROMISED
