"""Cron occurrences around every clock change of every time zone, compared with an oracle."""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime
from zoneinfo import ZoneInfo, available_timezones

import pytest

from tests.support.cron_oracle import compare, transitions

FIRST = 2020
LAST = 2041


@pytest.mark.timeout(3600)
def test_every_transition_of_every_zone_agrees_with_the_oracle() -> None:
    zones: dict[tuple[tuple[datetime, ...], tuple[object, ...]], list[str]] = defaultdict(list)
    for name in sorted(available_timezones()):
        zone = ZoneInfo(name)
        changes = tuple(transitions(zone, FIRST, LAST))
        start = datetime(FIRST, 1, 1, tzinfo=UTC)
        offsets = tuple(at.astimezone(zone).utcoffset() for at in (start, *changes))
        zones[changes, offsets].append(name)
    tried = 0
    for (changes, _), names in zones.items():
        for at in changes:  # zones with the same changes and offsets have the same occurrences
            tried += compare(names[0], at)
    assert sum(map(len, zones.values())) > 400
    assert tried > 100_000
