"""Sentences of the database about lost workers and leases."""

from __future__ import annotations

from typing import Final

SENTENCES: Final = {
    "lost": "the worker was lost",
    "chain_lost": "the worker was lost; {lost} of {most} jobs of its chain were lost",
    "lost_after_retries": "the worker was lost; it was already retried {retries} times",
    "lost_with_others": "the worker was lost; its jobs are tried one at a time",
    "in_grace": "its agent waited for this answer",
    "lease_of_bot": "a bot cannot hold the lease {lease}",
}
