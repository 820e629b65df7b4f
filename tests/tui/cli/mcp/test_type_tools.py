"""Names of the tools of job types."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from draftsman_tui.cli.mcp.type_tools import MAX_NAME, tool_names

TYPES = st.sets(
    st.text("aA_:", min_size=1, max_size=2)
    | st.text("ab:", min_size=42, max_size=60)
    | st.text(min_size=1, max_size=60),
    max_size=8,
)


def test_a_name_says_the_type_as_far_as_it_can() -> None:
    assert tool_names(["report:weekly", "send.mail"]) == {
        "report:weekly": "run_report_weekly",
        "send.mail": "run_send_mail",
    }
    names = tool_names(["a:b", "a.b", "A_B"])
    assert all(re.fullmatch(r"run_[aA]_[bB]_[0-9a-f]{8}", name) for name in names.values())


@given(TYPES)
def test_names_are_valid_and_of_one_type(types: set[str]) -> None:
    names = tool_names(types)
    assert names.keys() == types
    assert len({name.casefold() for name in names.values()}) == len(types)
    for type, name in names.items():
        assert re.fullmatch(rf"run_[A-Za-z0-9_-]{{1,{MAX_NAME - 4}}}", name)
        assert tool_names([*types - {type}, type])[type] == name  # in any order


@given(TYPES, st.text("aA_:", min_size=1, max_size=2))
def test_another_type_never_gets_a_name(types: set[str], added: str) -> None:
    """A client that has not listed the tools again calls the same type, or none."""
    before = tool_names(types - {added})
    after = tool_names(types | {added})
    assert after[added] not in before.values()
