"""Text rendering of payloads and usage."""

from __future__ import annotations

from draftsman.value_format import MAX_VALUE_LENGTH, fields, sum_usage, usage_lines


def test_a_value_of_any_shape_is_displayed_as_lines() -> None:
    value = {
        "pr_url": "https://example.org/1",
        "counts": {"files": 1, "binary": False, "owner": None, "empty": [], "said": ""},
        "skipped": ["a", 2, True],
        "checks": [{"name": "lint", "ok": True}, {"name": "types", "ok": False}],
        "rows": [[1, 2], [[3], [4]]],
        "notes": "one\ntwo",
        "deep": {"a": {"b": {"c": {"d": {"e": 1}}}}},
        "a name\nof two lines that is long": 1,
    }
    assert fields(value, "more") == [
        "pr_url   https://example.org/1",
        "counts",
        "  files   1",
        "  binary  no",
        "  owner   none",
        "  empty   none",
        '  said    ""',
        "skipped  a, 2, yes",
        "checks",
        "  - name  lint",
        "    ok    yes",
        "  - name  types",
        "    ok    no",
        "rows",
        "  - 1, 2",
        "  - - 3",
        "    - 4",
        "notes",
        "  one",
        "  two",
        "deep",
        "  a",
        "    b",
        "      c",
        '        d  {"e": 1}',
        "a name of two lines that is long  1",
    ]
    assert fields({}, "more") == []


def test_a_long_value_is_truncated_and_marked() -> None:
    (line,) = fields({"x": "y" * (MAX_VALUE_LENGTH + 7)}, "more")
    assert line == f"x  {'y' * MAX_VALUE_LENGTH}… 7 more characters"
    assert fields({"x": ["y" * 60] * 90}, "draftsman show D-1 --json")[-2:] == [
        f"  - {'y' * 60}",
        "… 31 more lines: draftsman show D-1 --json",
    ]


def test_usage_is_summed_and_displayed() -> None:
    first = {"cost_usd": 0.5, "input_tokens": 1000, "models": ["b"]}
    second = {"cost_usd": 1, "calls": 2, "models": ["a", "b"]}
    assert usage_lines(first) == "input tokens 1,000 · cost $0.50 · models b"
    added = {"cost_usd": 1.5, "input_tokens": 1000, "models": ["a", "b"], "calls": 2}
    assert sum_usage([first, None, second]) == added
