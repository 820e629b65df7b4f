"""Jobs inserted by SQL, past the services."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

STATE_COLUMNS: Final = frozenset(
    """
    queue priority position subject_key status claimed_from run_at run_count attempts max_attempts
    retry_count max_retries next_retry_at last_error error_class on_lost worker_id lease_token
    cancel_requested_at cancel_requested_by cancel_reason pr_url result has_targets version
    queued_at claimed_at started_at finished_at updated_at
    """.split()  # noqa: SIM905
)
"""The columns of `draftsman.jobs` that are in `job_states`."""


def insert_job(columns: Mapping[str, str], source: str = "") -> str:
    """Return the statement that inserts a request and its state.

    `columns` maps columns of `draftsman.jobs` to expressions over `source`: a table and a condition
    for a single row of it.
    """
    state = {name: value for name, value in columns.items() if name in STATE_COLUMNS}
    request = {name: value for name, value in columns.items() if name not in STATE_COLUMNS}
    return (
        f"WITH r (created) AS (INSERT INTO draftsman.job_requests ({', '.join(request)})"
        f" OVERRIDING SYSTEM VALUE SELECT {', '.join(request.values())}"
        f" {source and f'FROM {source}'} RETURNING number)"
        f" INSERT INTO draftsman.job_states ({', '.join(['number', 'type', *state])})"
        f" SELECT {', '.join(['created', columns['type'], *state.values()])}"
        f" FROM r{source and f', {source}'}"
    )
