"""What an action did, as the terminal shows it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from draftsman.formats.invisible import one_line
from draftsman.text import capitalized
from draftsman_tui.terminal.output import line, styled

if TYPE_CHECKING:
    from rich.text import Text

    from draftsman.actions.action import ActionResult


def result_line(result: ActionResult[Any]) -> Text:
    """Return what an action did, and the command that may follow."""
    then = f"; {result.then}" if result.then is not None else ""
    says = f"{' ' * bool(result.subject)}{one_line(result.predicate())}{then}"
    return line(styled(result.subject, "bold"), says)


def result_text(result: ActionResult[Any]) -> str:
    """Return what an action did and its warnings, without the command."""
    text = "; ".join([f"{result.subject} {result.predicate()}".strip(), *result.warnings])
    return capitalized(text, result.subject)


def results_text(results: Sequence[ActionResult[Any]]) -> str:
    """Return what was done to several rows, with those of which the same is said together."""
    from draftsman.actions.action import MAX_NAMED, ActionResult, listed

    if len(results) == 1:
        return result_text(results[0])
    groups: dict[str, list[str]] = {}
    for say in (ActionResult.predicate, lambda result: result.says):
        groups = {}
        for result in results:
            groups.setdefault(say(result), []).append(result.subject)
        if len(groups) <= MAX_NAMED:
            break
    return "; ".join(f"{listed(names)} {says}" for says, names in groups.items())
