"""Sentences of the database about descriptions of job types."""

from __future__ import annotations

from typing import Final

SENTENCES: Final = {
    "description_immutable": "the description of a job type is immutable",
}
