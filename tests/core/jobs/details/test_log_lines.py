"""Lines of the log: Markdown, and the beginning and the end of long texts."""

from __future__ import annotations

from draftsman.jobs.details.log_lines import fold, folded_title, markdown_lines
from draftsman.jobs.details.sections.section import LineSpan, plain

SOURCE = """# Fixed
The **total** is [rounded](https://x.example/a):

- once
  1. in `total()`

```python
def total():
    return 1
```
"""


def test_markdown_is_lines_with_strong_words() -> None:
    lines = [*markdown_lines(SOURCE)]
    assert [plain(line) for line in lines] == [
        "Fixed",
        "",
        "The total is rounded (https://x.example/a):",
        "• once",
        "  1. in `total()`",
        "",
        "    def total():",
        "        return 1",
    ]
    names = [span.text for line in lines for span in line if isinstance(span, LineSpan)]
    assert names == ["Fixed", "total"]


def test_a_long_text_is_folded_with_the_number_of_its_lines() -> None:
    assert fold(range(40), 40) == (range(40), 0, ())
    assert fold(range(41), 40) == (range(10), 21, range(31, 41))
    assert fold(range(7), 6) == (range(2), 3, range(5, 7))
    assert folded_title("x" * 9, 9) == "x" * 9
    assert folded_title("x" * 1009, 9) == f"{'x' * 9} … 1,000 more characters"
