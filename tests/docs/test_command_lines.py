"""The pages call commands as the command line takes them."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from tests.docs.command_lines import command_lines, problem
from tests.docs.test_readme import PAGES


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_each_command_line_of_a_page_can_be_parsed(
    page: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"{}")))
    lines = [*command_lines(page.read_text("utf-8"))]
    assert [(line, text) for line in lines if (text := problem(line))] == []


def test_a_wrong_command_line_is_found() -> None:
    page = """
1. In a list:

   ```sh
   FOO=1 draftsman pause D-1  # without a reason
   x=$(draftsman jobs --stat failed) && draftsman show
   draftsman repos check pay > out
   ```

```python
draftsman nothing
```
"""
    first, second, third = command_lines(page)
    assert "--reason" in str(problem(first))
    assert "--stat" in str(problem(second))
    assert problem(third) is None
