"""Data of an earlier version is carried over: the worker's own steps, and what an agent forged."""

from __future__ import annotations

import psycopg

from draftsman import migrate, resources
from draftsman.domain.reserved_names import Owner
from draftsman.runtime import wire
from draftsman.settings import Settings
from draftsman.store.postgres.database import Database

OLD = """
INSERT INTO draftsman.jobs (id, type, idempotency_key, request_digest, source, invoker_id)
VALUES (gen_random_uuid(), 'run_agent', 'k', 'd', 'cli', 'anna');
INSERT INTO draftsman.job_steps (job, key, status, invocation_id, run, result, finished_at)
VALUES (1, 'agent:base', 'done', 'i', 1, '"abc"', now()),
       (1, 'sleep:nap', 'pending', 'i', 1, NULL, NULL),
       (1, 'mine', 'pending', 'i', 1, NULL, NULL);
INSERT INTO draftsman.artifacts (job, run, name, kind, size, sha256)
VALUES (1, 1, 'changes.patch', 'file', 5, 's'), (1, 1, 'checkpoint.bundle', 'bundle', 0, 's'),
       (1, 2, 'checkpoint.bundle', 'file', 5, 's');
INSERT INTO draftsman.job_checkpoints (job, run, data, bundle)
VALUES (1, 1, '{"sound": true}', 2), (1, 2, '{"sound": false}', 3)
"""
LATER = """
INSERT INTO draftsman.job_steps (job, key, invocation_id, run)
VALUES (1, 'agent:publish', 'i', 2), (1, 'other', 'i', 2)
"""
"""As a worker of the earlier version goes on to write."""


async def test_steps_and_forged_files_of_an_earlier_version(empty_url: str) -> None:
    with psycopg.connect(empty_url, autocommit=True) as conn:
        for name, text in resources.migrations():
            if name < "0015":
                conn.execute(text.encode())
        conn.execute(OLD)
    await migrate.migrate(empty_url)
    with psycopg.connect(empty_url, autocommit=True) as conn:
        conn.execute(LATER)
    settings = Settings.model_validate({"database_url": empty_url})
    db = Database(empty_url, settings.database)
    await db.open()
    try:
        checkpoints = wire(settings, db, False).checkpoints
        owners = {step.key: step.owner for step in await checkpoints.steps(1)}
        own, other = Owner.WORKER, Owner.HANDLER
        assert owners == {
            **dict.fromkeys(("agent:base", "sleep:nap", "agent:publish"), own),
            **dict.fromkeys(("mine", "other"), other),
        }
        assert await checkpoints.patch(1) is None
        assert await checkpoints.latest(1) == ({"sound": True}, b"")
    finally:
        await db.close()
