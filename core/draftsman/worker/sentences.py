"""Sentences of the database about leases."""

from __future__ import annotations

from typing import Final

SENTENCES: Final = {
    "in_grace": "its agent waited for this answer",
    "lease_of_bot": "a bot cannot hold the lease {lease}",
}
