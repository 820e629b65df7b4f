"""`digest`: the hours of a person's digests."""

from __future__ import annotations

from draftsman.runtime import Runtime
from tests.tui.cli.cli_runner import Cli


async def test_the_hours_are_set_shown_and_ended(cli: Cli, rt: Runtime) -> None:
    assert (await cli("digest")).out == "no digest: questions notify at once\n"
    chosen = (await cli("digest", "15:00,09:00", "--timezone", "Europe/Berlin")).out
    assert "at 09:00, 15:00 Europe/Berlin; the next in " in chosen
    assert (await cli("digest")).out == chosen
    assert (await cli("digest", "--json")).json["timezone"] == "Europe/Berlin"
    wrong = await cli("digest", "25:00")
    assert (wrong.code, "give up to 24 times such as 09:00,15:00" in wrong.err) == (2, True)
    assert (await cli("digest", "off")).out == "no digest: questions notify at once\n"
