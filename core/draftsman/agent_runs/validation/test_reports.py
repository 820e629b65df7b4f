"""Reports of test runners: how many tests ran. Pure.

JUnit's XML is written by pytest, Maven, Gradle, PHPUnit, nextest, Deno, Bun and others; JSON by Go,
Jest, Vitest and RSpec.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from io import BytesIO
from typing import Any
from xml.etree import ElementTree


def count_tests(data: bytes) -> int:
    """Return how many tests ran, passed or not; 0 for data in no known format."""
    if data.lstrip()[:1] == b"<":
        return _junit(data)
    return sum(map(_json, _documents(data)))


def _junit(data: bytes) -> int:
    """Return the test cases that were not skipped; those before an error of the format."""
    count = 0
    try:
        for _, element in ElementTree.iterparse(BytesIO(data)):  # noqa: S314 - bounded by expat
            name = element.tag.rpartition("}")[2]
            if name == "testcase":
                children = {child.tag.rpartition("}")[2] for child in element}
                count += "skipped" not in children and element.get("status") != "disabled"
                element.clear()
    except ElementTree.ParseError:
        pass
    return count


def _documents(data: bytes) -> Iterator[dict[str, Any]]:
    """Yield the objects of a document, or of its lines."""
    text = data.decode("utf-8", "replace")
    for part in (text, *text.splitlines()):
        try:
            value = json.loads(part)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            yield value
            if part is text:
                return


def _json(value: dict[str, Any]) -> int:
    summary = value.get("summary")
    if "Test" in value:  # go test -json: an object for each event
        return int(value.get("Action") in ("pass", "fail"))
    if isinstance(summary, dict):  # RSpec
        return _number(summary, "example_count") - _number(summary, "pending_count")
    return _number(value, "numPassedTests") + _number(value, "numFailedTests")  # Jest, Vitest


def _number(value: dict[str, Any], name: str) -> int:
    number = value.get(name)
    return number if isinstance(number, int) and number > 0 else 0
