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
    assert "at 09:00 " in (await cli("digest", "9:00")).out
    for wrong in ("25:00", "24:00", "9", "9.00", "09:60", "9:5", "09:00,", "009:00", "٩:00"):
        done = await cli("digest", wrong)
        assert (done.code, done.err.count("\n")) == (2, 1), wrong
        assert "24 times of 00:00 to 23:59, as in 09:00,15:00" in done.err
    assert "at 09:00 " in (await cli("digest")).out, "nothing is lost"
    assert (await cli("digest", "off")).out == "no digest: questions notify at once\n"
