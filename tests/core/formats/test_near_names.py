"""Near names of a name that is not known."""

from __future__ import annotations

import pytest

from draftsman.formats.near_names import did_you_mean, near_names

TYPES = ("ops:broken", "ops:long", "ops:quick", "billing:refund", "billing:invoice", "echo")


@pytest.mark.parametrize(
    ("typed", "near"),
    [
        ("ops:brken", ["ops:broken"]),
        ("OPS:LONG", ["ops:long"]),
        ("ops:nothing", []),
        ("billing:month", []),
        ("biling:refund", ["billing:refund"]),
        ("ehco", ["echo"]),
        ("zzz", []),
    ],
)
def test_only_names_that_are_near_are_named(typed: str, near: list[str]) -> None:
    assert near_names(typed, TYPES) == near


def test_equally_near_names_are_all_named() -> None:
    assert did_you_mean("jobz", ("jobs", "joby", "logs")) == "; did you mean joby or jobs?"
