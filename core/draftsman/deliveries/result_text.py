"""Texts of the results of jobs: changes, validation, counts and usage. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from draftsman.formats.amounts import counted, format_money
from draftsman.results import shown_values
from draftsman.text import humanize, is_link

_CHANGE: Final = (
    "branch",
    "draft",
    "commit",
    "uncommitted",
    "files_changed",
    "insertions",
    "deletions",
    "left_out",
    "check_files",
    "conflicts",
    "conflicts_unknown",
    "pull_request_problem",
)
"""Fields of a result that `change_summary` renders."""
_ANSWER: Final = {"outcome", "value", "text", "by", "at", "reason"}
"""Fields of the result of a job that only asks."""
_COUNTS: Final = 12
"""Maximum number of counts of a result in a message."""
_NAME: Final = re.compile(r"\w[\w -]{0,39}")
"""Names of counts that a message shows."""
Numbers = dict[str, int | float]


def change_summary(result: Mapping[str, Any]) -> str:
    """Return the changes: `branch fix/it, commit 0123abcd, 1 file changed, +2 -1`; or "".

    A draft, what the work leaves out, changed check files, conflicts with other branches and a pull
    request that was not opened are named.
    """
    change = {key: result.get(key) for key in _CHANGE}
    draft = " (draft)" if change["draft"] is True else ""
    clauses = [f"branch {change['branch']}{draft}"] if isinstance(change["branch"], str) else []
    if isinstance(change["commit"], str):
        clauses.append(f"commit {change['commit'][:12]}")
    if isinstance(base := change["uncommitted"], Mapping) and isinstance(base.get("files"), int):
        commit = str(base.get("commit"))[:12]
        clauses.append(f"on {counted(base['files'], 'uncommitted file')} in commit {commit}")
    if isinstance(files := change["files_changed"], int):
        clauses.append(f"{counted(files, 'file')} changed")
    lines = [(sign, change[key]) for sign, key in (("+", "insertions"), ("-", "deletions"))]
    if counts := " ".join(f"{sign}{n}" for sign, n in lines if isinstance(n, int)):
        clauses.append(counts)
    if isinstance(left_out := change["left_out"], list) and left_out:
        clauses.append(f"left out: {_first_three(left_out)}")
    if isinstance(checks := change["check_files"], list) and checks:
        clauses.append(f"changes check files {_first_three(checks)}")
    clauses += [f"conflicts with {text}" for text in _conflict_texts(change["conflicts"])]
    if isinstance(unknown := change["conflicts_unknown"], str):
        clauses.append(f"conflicts unknown: {unknown}")
    if isinstance(problem := change["pull_request_problem"], str) and problem:
        clauses.append(f"pull request {problem}")
    return ", ".join(clauses)


def _conflict_texts(conflicts: Any) -> Iterator[str]:
    """Yield `D-7, D-6 (src/pay.py)`: the branches that conflict in the same files."""
    branches: dict[str, list[str]] = {}
    for item in conflicts if isinstance(conflicts, list) else ():
        if isinstance(item, Mapping) and isinstance(paths := item.get("paths"), list):
            files = _first_three(paths) or "folders"
            branches.setdefault(files, []).append(str(item.get("job") or item.get("branch")))
    for files, names in branches.items():
        yield f"{_first_three(names)} ({files})"


def _first_three(names: Sequence[Any]) -> str:
    omission = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(map(str, names[:3])) + omission


def pr_url(result: Mapping[str, Any]) -> str | None:
    """Return the URL of the pull request in a result; that in the agent's data is a claim only."""
    url = result.get("pr_url")
    return url.strip() if isinstance(url, str) and is_link(url.strip()) else None


def validation_summary(result: Mapping[str, Any]) -> str:
    """Return how many validators passed: `validation 2 of 3 passed, signed evidence`; or ""."""
    validators = result.get("validation")
    if not isinstance(validators, list) or not validators:
        return ""
    passed = sum(
        isinstance(validator, Mapping) and validator.get("passed") is True
        for validator in validators
    )
    signed = ", signed evidence" if isinstance(result.get("evidence"), str) else ""
    return f"validation {passed} of {len(validators)} passed{signed}"


def counts_summary(result: Mapping[str, Any]) -> str:
    """Return validation and other counts: `validation 2 of 3 passed, lines 7`; or ""."""
    numbers, _ = _split_numbers(result)
    counts = [f"{name} {_short(number)}" for name, number in numbers.items()]
    return ", ".join(text for text in (validation_summary(result), *counts) if text)


def usage_text(
    tokens: int = 0, cost: float = 0.0, allowed: int = 0, rules: Sequence[int] = ()
) -> str:
    """Return `1,020 tokens, $0.42; 4 commands allowed by rule 3`, each part only if it is known.

    `allowed` counts the questions that permission `rules` answered.
    """
    amounts = [counted(tokens, "token")] if tokens else []
    if tokens and cost:
        amounts.append(format_money(cost, cents=True))
    names = f"rule{'' if len(rules) == 1 else 's'} {', '.join(map(str, rules))}"
    cited = f"{counted(allowed, 'command')} allowed by {names}" if allowed else ""
    return "; ".join(filter(None, [", ".join(amounts), cited]))


def unrendered_fields(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that no summary of a result contains."""
    rendered = _rendered_keys(result)
    return {key: value for key, value in result.items() if key not in rendered}


def raw_data(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return the data of a result that messages omit, for a file.

    The answer to the question of a job is in the message of that question.
    """
    return {} if result.keys() == _ANSWER else _split_numbers(result)[1]


def summary_lines(result: Mapping[str, Any]) -> list[str]:
    """Return the summary and the pull request of a result."""
    summary = result.get("summary")
    return [text for text in (summary, pr_url(result)) if isinstance(text, str) and text.strip()]


def _split_numbers(result: Mapping[str, Any]) -> tuple[Numbers, dict[str, Any]]:
    """Return the counts of a result and of its agent's data, and the fields without a rendering."""
    rendered = _rendered_keys(result)
    data = result.get("data")
    if not isinstance(data, Mapping):
        return _take_numbers(result, rendered, _COUNTS)
    numbers, remaining = _take_numbers(result, rendered | {"data"}, _COUNTS)
    data_numbers, remaining_data = _take_numbers(data, rendered, _COUNTS - len(numbers))
    return data_numbers | numbers, remaining | ({"data": remaining_data} if remaining_data else {})


def _take_numbers(
    table: Mapping[str, Any], rendered: set[str], limit: int
) -> tuple[Numbers, dict[str, Any]]:
    """Return at most `limit` numbers of a table, and its other fields."""
    numbers: Numbers = {}
    remaining: dict[str, Any] = {}
    for key, value in table.items():
        if key in rendered or not value:
            continue
        field_numbers = _numbers(str(key), value)
        if field_numbers and len(numbers) + len(field_numbers) <= limit:
            numbers |= field_numbers
        else:
            remaining[str(key)] = value
    return numbers, remaining


def _rendered_keys(result: Mapping[str, Any]) -> set[str]:
    """Return the keys of a result that a summary contains."""
    values = shown_values(result)
    keys = set(result) if "" in values else set(values)
    keys |= set(_CHANGE) if change_summary(result) else set()
    kinds = {"summary": str, "validation": list, "validated": bool, "evidence": str}
    keys |= {key for key, kind in kinds.items() if isinstance(result.get(key), kind)}
    if pr_url(result):
        keys |= {"pr_url", "merged"} if result.get("merged") is True else {"pr_url"}
    return keys


def _numbers(key: str, value: Any) -> Numbers:
    """Return a number, or a table of numbers, by display name; empty for another value."""
    table = value if isinstance(value, Mapping) else {"": value}
    numbers = {humanize(f"{key} {name}".strip()): number for name, number in table.items()}
    valid = all(
        isinstance(number, int | float) and not isinstance(number, bool) and _NAME.fullmatch(name)
        for name, number in numbers.items()
    )
    return numbers if valid else {}


def _short(number: int | float) -> str:
    return f"{number:g}" if isinstance(number, float) else str(number)
