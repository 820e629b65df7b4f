"""Approval tokens, stored as hashes."""

from __future__ import annotations

from dataclasses import dataclass

from draftsman.database.database import Connection, execute, fetch_one, scalar
from draftsman.database.named_queries import load

_Q = load(__name__)


@dataclass(frozen=True, slots=True)
class ApprovalToken:
    """A token of an approval: the approver, its creator, and whether it was used."""

    job: int
    question: int
    approver: str
    minted_by: str
    used: bool


async def mint(
    conn: Connection,
    job: int,
    ordinal: int,
    *,
    approver: str,
    minted_by: str,
    token_hash: str,
    actor: str,
) -> bool:
    """Store the hash of a new token; return False where the approval is closed or decided."""
    params = {
        "job": job,
        "ordinal": ordinal,
        "approver": approver,
        "hash": token_hash,
        "minted_by": minted_by,
        "actor": actor,
    }
    return await scalar(conn, _Q["mint"], params) is not None


async def refuse(
    conn: Connection,
    job: int,
    ordinal: int,
    *,
    approver: str,
    voter: str,
    reason: str,
    actor: str,
    most: int,
) -> None:
    """Count a refused token; the first `most` refusals of a question are also events."""
    params = {
        "job": job,
        "ordinal": ordinal,
        "approver": approver,
        "voter": voter,
        "reason": reason,
        "actor": actor,
        "most": most,
    }
    await execute(conn, _Q["refuse"], params)


async def find(conn: Connection, token_hash: str) -> ApprovalToken | None:
    """Return the token with this hash."""
    return await fetch_one(conn, _Q["find"], {"hash": token_hash}, ApprovalToken)


async def use(conn: Connection, token_hash: str, actor: str) -> bool:
    """Mark the token as used by this actor; return False when it was used before."""
    return bool(await scalar(conn, _Q["use"], {"hash": token_hash, "actor": actor}))
