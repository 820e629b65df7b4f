"""Links of the pages lead to files and headings."""

from __future__ import annotations

from tests.docs.code_names import ROOT
from tests.docs.links import broken_links
from tests.docs.pages import DOCS


def test_the_links_of_the_pages_lead_somewhere() -> None:
    pages = [*ROOT.glob("*.md"), *DOCS.rglob("*.md"), ROOT / "bench" / "README.md"]
    broken = {page.name: broken_links(page, page.read_text("utf-8")) for page in sorted(pages)}
    assert {name: links for name, links in broken.items() if links} == {}
