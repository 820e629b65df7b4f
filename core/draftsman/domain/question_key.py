"""Keys of questions that a program asks in a run."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence


def derived_key(kind: str, content: Sequence[str]) -> str:
    """Return a key that is the same for the same question."""
    digest = hashlib.sha256(json.dumps([*content]).encode()).hexdigest()
    return f"{kind}-{digest[:16]}"
