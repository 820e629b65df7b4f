"""The page of setup: its table of ports has each address of the configuration."""

from __future__ import annotations

import re

from tests.docs.code_names import ROOT
from tests.docs.pages import DOCS

PAGE = (DOCS / "setup.md").read_text(encoding="utf-8")


def test_the_table_of_ports_has_each_address_that_can_be_configured() -> None:
    config = (ROOT / "config" / "draftsman.toml").read_text(encoding="utf-8")
    addresses = set(re.findall(r'^#(?:health_)?listen = "(.+)"$', config, re.MULTILINE))
    assert len(addresses) > 6
    table = PAGE.partition("## Ports\n")[2].partition("\n## ")[0]
    assert [address for address in sorted(addresses) if address not in table] == []
