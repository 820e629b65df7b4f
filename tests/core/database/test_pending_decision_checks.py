"""Constraints of pending decisions, and of the counts of changed lines."""

from __future__ import annotations

from typing import Final

from draftsman.database.database import Connection
from draftsman_testing.factories import Factory
from tests.core.database.test_group_checks import insert
from tests.support.statements import CHECK, UNIQUE, refused, run

DECISION: Final = {
    "job": "1",
    "source": "'cli'",
    "source_event_id": "'e'",
    "actor_id": "'a'",
    "actor_display_name": "'A'",
    "voter": "'a'",
    "decision": "'{}'",
    "applies_at": "draftsman.now() + interval '5 s'",
}
DECISIONS: Final = [
    ({"source_event_id": "''"}, "pending_decisions_source_event_id_check"),
    ({"decision": "'[]'"}, "pending_decisions_decision_check"),
    ({"payload": "'{}'"}, "pending_decisions_payload"),
    ({"question": "1"}, "pending_decisions_payload"),
    ({"applies_at": "draftsman.now()"}, "pending_decisions_window"),
    ({"applies_at": "draftsman.now() + interval '61 s'"}, "pending_decisions_window"),
]
ARTIFACT: Final = {
    "job": "1", "run": "1", "name": "'n'", "kind": "'file'", "size": "1", "sha256": "''"
}  # fmt: skip
ARTIFACTS: Final = [
    ({"added": "-1"}, "artifacts_added_check"),
    ({"removed": "-1"}, "artifacts_removed_check"),
]
TABLES: Final = (DECISIONS, ARTIFACTS)


async def test_a_pending_decision_is_complete_and_one_a_person(
    make: Factory, conn: Connection
) -> None:
    number = str(await make.queued())
    for wrong, constraint in ARTIFACTS:
        async with refused(CHECK, f'"{constraint}"'):
            await run(conn, insert("artifacts", ARTIFACT | {"job": number} | wrong))
    stored = DECISION | {"job": number}
    for wrong, constraint in DECISIONS:
        async with refused(CHECK, f'"{constraint}"'):
            await run(conn, insert("pending_decisions", stored | wrong))
    await run(conn, insert("pending_decisions", stored))
    async with refused(UNIQUE, '"pending_decisions_event"'):
        await run(conn, insert("pending_decisions", stored | {"voter": "'b'"}))
    async with refused(UNIQUE, '"pending_decisions_voter"'):
        await run(conn, insert("pending_decisions", stored | {"source_event_id": "'f'"}))
