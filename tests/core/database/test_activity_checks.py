"""Constraints of the activity of agents, and of transcripts."""

from __future__ import annotations

from typing import Final

from draftsman.database.database import Connection
from draftsman_testing.factories import Factory
from tests.support.cases import cases
from tests.support.statements import CHECK, refused, run

ROWS: Final = [
    ({"kind": "'other'"}, "run_activity_kind_check"),
    ({"state": "'gone'"}, "run_activity_state_check"),
    ({"key": "repeat('x', 501)"}, "run_activity_key_check"),
    ({"text": "repeat('x', 16001)"}, "run_activity_text_check"),
    ({"detail": "to_jsonb(repeat('x', 131072))"}, "run_activity_detail_check"),
]
LIVE: Final = [
    ({"thread_key": "''"}, "live_threads_thread_key_check"),
    ({"run": "0"}, "live_threads_run_check"),
    ({"stream": "'paused'", "started_at": "now()"}, "live_threads_stream_check"),
    ({"shown": "to_jsonb(repeat('x', 65536))"}, "live_threads_shown_check"),
    ({"status_text": "repeat('x', 501)"}, "live_threads_status_text_check"),
    ({"session": "'paused'"}, "live_threads_session_check"),
    ({"stream": "'starting'"}, "live_threads_started"),
    ({"stream_ref": "'C1/1.1'"}, "live_threads_ref"),
]
NAMES: Final = [
    ("'transcript.jsonl'", "'file'"),
    ("'my.jsonl'", "'transcript'"),
    ("'evidence.json'", "'file'"),
    ("'my.json'", "'evidence'"),
]
TABLES: Final = (ROWS, LIVE)


@cases(("wrong", "constraint"), ROWS)
async def test_a_row_of_activity_is_bounded(
    conn: Connection, wrong: dict[str, str], constraint: str
) -> None:
    fields = {"job": "1", "run": "1", "seq": "1", "kind": "'file'", "text": "''"} | wrong
    async with refused(CHECK, f'"{constraint}"'):
        await run(
            conn,
            f"INSERT INTO draftsman.run_activity ({', '.join(fields)})"
            f" VALUES ({', '.join(fields.values())})",
        )


@cases(("wrong", "constraint"), LIVE)
async def test_a_live_thread_has_the_columns_of_its_stream(
    make: Factory, conn: Connection, wrong: dict[str, str], constraint: str
) -> None:
    job = await make.queued()
    fields = {"thread_key": "'k'", "job": str(job), "run": "1"} | wrong
    async with refused(CHECK, f'"{constraint}"'):
        await run(
            conn,
            f"INSERT INTO draftsman.live_threads ({', '.join(fields)})"
            f" VALUES ({', '.join(fields.values())})",
        )


@cases(("name", "kind"), NAMES)
async def test_the_names_of_transcripts_and_evidence_are_reserved(
    conn: Connection, name: str, kind: str
) -> None:
    async with refused(CHECK, '"artifacts_reserved"'):
        await run(
            conn,
            "INSERT INTO draftsman.artifacts (job, run, name, kind, size, sha256)"
            f" VALUES (1, 1, {name}, {kind}, 1, '')",
        )
