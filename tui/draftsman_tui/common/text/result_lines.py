"""The result of a job as lines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from draftsman.domain.messages import result_text
from draftsman_tui.common.output import styled
from draftsman_tui.common.value_format import fields

if TYPE_CHECKING:
    from rich.text import Text

    from draftsman.domain.job import Job


def result_lines(job: Job) -> Iterator[Text]:
    """Yield the summary, the changes and the validation of a result, then its other fields.

    The agent's own `data` may name files on its worker, so it is only in the JSON output.
    """
    result = job.result or {}
    texts = [
        *result_text.summary_lines(result),
        result_text.change_summary(result),
        result_text.validation_summary(result),
    ]
    yield from (styled(f"  {text_line}") for text in texts for text_line in text.splitlines())
    others = result_text.unrendered_fields(result)
    command = f"draftsman show {job.name} --json"
    if others.pop("data", None):
        yield styled(f"  data: {command} | jq .result.data", "dim")
    yield from (styled(f"  {text_line}") for text_line in fields(others, command))
