"""Sentences of the database about reminders, ladders and digests."""

from __future__ import annotations

from typing import Final

SENTENCES: Final = {
    "acknowledged": "D-{job}/{question}: {person} works on the answer",
    "unacknowledged": "D-{job}/{question}: {person} no longer works on the answer",
    "delegated": "D-{job}/{question}: {by} asked {to} to answer",
    "delegated_again": (
        "D-{job}/{question}: {by} asked {to} to answer; then {then_by} asked {then_to}"
    ),
    "delegated_to_you": "D-{job}/{question}: {by} asked you to answer",
    "delegated_to_you_again": (
        "D-{job}/{question}: {by} asked you to answer; then {then_by} asked {then_to}"
    ),
    "view": "{role} cannot view as {source}:{account}",
    "delay": "{source}:{account} may not delay reminders of D-{job}/{question}",
    "delay_time": "reminders can be delayed by more than 0 s and at most a day",
    "ladder_step": "{role} cannot take steps of ladders",
    "digest": "{actor} may not change the digest of {person}",
    "first_view_kept": "the first view is kept",
    "step_taken_once": "a step is taken once",
    "single_digest": "a question is in at most one digest of a person",
}
