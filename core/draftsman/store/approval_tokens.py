"""Rows of approval tokens, of which only hashes are kept."""

from __future__ import annotations

from dataclasses import dataclass

from draftsman.store.postgres.database import Connection, fetch_one, scalar
from draftsman.store.queries import load

_Q = load("approval_tokens")


@dataclass(frozen=True, slots=True)
class ApprovalToken:
    """A token's gate, the person it decides for, who minted it, and whether it was used."""

    job: int
    question: int
    approver: str
    minted_by: str
    used: bool


async def mint(
    conn: Connection, job: int, ordinal: int, approver: str, minted_by: str, token_hash: str
) -> bool:
    """Keep the hash of a new token; return False where the gate is closed or the token was used."""
    params = {"job": job, "ordinal": ordinal, "approver": approver, "hash": token_hash}
    return await scalar(conn, _Q["mint"], params | {"minted_by": minted_by}) is not None


async def find(conn: Connection, token_hash: str) -> ApprovalToken | None:
    """Return the token of this hash."""
    return await fetch_one(conn, _Q["find"], {"hash": token_hash}, ApprovalToken)


async def use(conn: Connection, token_hash: str) -> bool:
    """Spend the token; return False when it was spent before."""
    return bool(await scalar(conn, _Q["use"], {"hash": token_hash}))
