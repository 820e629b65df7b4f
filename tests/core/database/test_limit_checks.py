"""Constraints of limits, and the rules of jobs that wait for places."""

from __future__ import annotations

from typing import Final

from draftsman.database.database import Connection
from draftsman_testing.factories import Factory
from tests.support.cases import cases
from tests.support.statements import CHECK, refused, run

LIMIT: Final = {"scope": "'repo'", "value": "'shop'", "running": "1"}
CHANGE: Final = {"limits": "'[]'", "actor": "'system'"}
BUCKET: Final = {"name": "'repo:shop'"}
WRONG: Final = [
    ("limits", LIMIT | {"scope": "'host'"}, "limits_scope_check"),
    ("limits", LIMIT | {"value": "''"}, "limits_value_check"),
    ("limits", LIMIT | {"running": "0"}, "limits_running_check"),
    ("limits", LIMIT | {"rate": "0", "period": "1"}, "limits_rate_check"),
    ("limits", LIMIT | {"rate": "1", "period": "0"}, "limits_period_check"),
    ("limits", LIMIT | {"rate": "1", "period": "1", "burst": "0"}, "limits_burst_check"),
    ("limits", LIMIT | {"rate": "1"}, "limits_rate"),
    ("limits", LIMIT | {"burst": "1"}, "limits_rate"),
    ("limits", LIMIT | {"release_while_waiting": "true"}, "limits_key"),
    ("limits", LIMIT | {"scope": "'concurrency_key'"}, "limits_key"),
    ("limits", LIMIT | {"partition": "'repo'"}, "limits_partition"),
    ("limits", LIMIT | {"scope": "'queue'", "partition": "'host'"}, "limits_partition_check"),
    ("limit_changes", CHANGE | {"limits": "'{}'"}, "limit_changes_limits_check"),
    ("limit_changes", CHANGE | {"actor": "''"}, "limit_changes_actor_check"),
    ("limit_buckets", BUCKET | {"taken": "-1"}, "limit_buckets_taken_check"),
    ("limit_buckets", BUCKET | {"start_counts": "'{1}'"}, "limit_buckets_starts"),
    ("limit_buckets", BUCKET | {"tokens": "1"}, "limit_buckets_tokens"),
    ("pending_cancels", {"job": "1", "actor": "''"}, "pending_cancels_actor_check"),
    ("postponed_work", {"due_at": "now()"}, "postponed_work_kind"),
    ("postponed_work", {"key": "'k'", "ended": "1"}, "postponed_work_kind"),
    ("postponed_work", {"bucket": "'repo:shop'"}, "postponed_work_change"),
    ("postponed_work", {"key": "'k'", "change": "1"}, "postponed_work_change"),
]
RULES: Final = [
    ("held_by = 'repo:shop'", "job_states_held_by"),
    ("hold = 'paused', held_by = 'repo:shop'", "job_states_held_by"),
    ("hold = 'limit'", "job_states_hold"),
    ("hold = 'limit', held_by = 'repo:shop'", "job_states_hold"),
    ("hold = 'limit', held_by = 'repo:shop', limits = '{}'", "job_states_hold"),
    ("hold = 'paused', limits = '{repo:shop}'", "job_states_hold"),
    ("hold = 'key'", "job_states_hold"),
]
TABLES: Final = (WRONG, RULES)


@cases(("table", "columns", "constraint"), WRONG)
async def test_a_limit_has_valid_columns(
    conn: Connection, table: str, columns: dict[str, str], constraint: str
) -> None:
    names = ", ".join(columns)
    values = ", ".join(columns.values())
    async with refused(CHECK, f'"{constraint}"'):
        await run(conn, f"INSERT INTO draftsman.{table} ({names}) VALUES ({values})")


@cases(("change", "rule"), RULES)
async def test_a_job_waits_for_a_bucket_of_its_own(
    make: Factory, conn: Connection, change: str, rule: str
) -> None:
    number = await make.queued()
    async with refused(CHECK, f'"{rule}"'):
        await run(conn, f"UPDATE draftsman.job_states SET {change} WHERE number = %s", (number,))


async def test_a_running_job_waits_for_no_place(make: Factory, conn: Connection) -> None:
    work = await make.running()
    async with refused(CHECK, '"job_states_hold"'):
        await run(
            conn,
            "UPDATE draftsman.job_states SET hold = 'limit', held_by = 'a', limits = '{a}'"
            " WHERE number = %s",
            (work.number,),
        )
