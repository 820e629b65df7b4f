"""Limits of the texts of a request and of other input, in one place.

The function `forged_column` and the constraints of `migrations/0017_sizes.sql` keep a session that
does not use the programs from storing more. Lengths are in characters, documents in bytes of JSON.
"""

from __future__ import annotations

from typing import Final

from draftsman.errors import UsageError

DISPLAY_NAME: Final = 200
"""The name that an account has in its channel; more is cut."""
MAX_NAMES: Final = 100
"""Number of tags, and of skills, of a request."""
TAG: Final = 200
SKILL: Final = 200
TARGET: Final = 1000
"""A notification target: `log`, `webhook:NAME`."""
LABEL: Final = 500
"""Id or name of a label."""
LABELS: Final = 500_000
"""Document of the labels of a request."""
REFERENCE: Final = 100_000
"""Document that identifies a file in its channel."""
PERSON: Final = 200
"""A person or a group."""
COMMAND_WORD: Final = 300
REPO_NAME: Final = 1000
"""The name, the owner and the branch of a repository."""
QUEUE: Final = 63
JOB_TYPE: Final = 100
KEY: Final = 1000
"""The key of a step, and the name of an artifact."""
EVENT_KIND: Final = 200


def check_length(text: str, most: int, what: str) -> str:
    """Return a text; raises UsageError with the limit for more characters."""
    if len(text) > most:
        raise UsageError(
            f"{what} {text[:40]!r}… has {len(text):,} characters; at most {most:,} are allowed"
        )
    return text
