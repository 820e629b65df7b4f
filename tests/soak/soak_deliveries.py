"""Ten thousand deliveries through a proxy that fails, with dispatchers killed now and then.

Needs nothing but the embedded server; takes a few minutes.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from draftsman.runtime import Runtime
from draftsman.store.db import Connection
from tests.core.outbox.storm import Storm
from tests.factories import Factory
from tests.support.chat import FATES

JOBS, NOTICES, KILLS = 500, 20, 20


@pytest.mark.timeout(3600)
async def test_ten_thousand_are_each_visible_once_and_in_order(
    make: Factory, rt: Runtime, conn: Connection, record_property: Callable[[str, object], None]
) -> None:
    storm = Storm(
        jobs=JOBS,
        notices=NOTICES,
        processes=2,
        kills=KILLS,
        seed=2,
        deadline=3000,
        channels=50,
        timeout=5,
    )
    proxy = await storm.rage(make, conn)
    kinds = await storm.check(rt, conn)
    assert set(proxy.fates) == set(FATES), "not every fault struck"
    assert storm.killed == KILLS
    record_property("faults", dict(proxy.fates))
    record_property("deliveries", {str(kind): count for kind, count in kinds.items()})
