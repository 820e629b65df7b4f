"""How a board is shown: to people with names of labels, as data with ids."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from draftsman_tui.common.output import line, styled

if TYPE_CHECKING:
    from draftsman.domain.trello.board import BoardConfig, LabelRule
    from draftsman_tui.cli.app import App

STYLES = {"ok": "green", "warn": "yellow", "fail": "bold red"}


def document(config: BoardConfig, **more: Any) -> dict[str, Any]:
    """Return a board as JSON shows it."""
    return config.model_dump(mode="json") | more


def rule_text(rule: LabelRule) -> str:
    """Return what a label makes."""
    return str(rule.mode) + (f" by {rule.agent}" if rule.agent else "")


def print_board(app: App, config: BoardConfig, names: Mapping[str, str] | None = None) -> None:
    """Print how a board is watched; `names` are those of labels and lists, by id."""
    out = app.out

    def called(id: str) -> str:
        return repr(names[id]) if names and id in names else id

    out.print(line(styled(config.name, "bold"), f"  {config.board_id}  {config.url}"))
    for id, rule in config.labels.items():
        out.print(f"label {rule.name or '(no name)'} makes a job, {rule_text(rule)}  {id}")
    if config.queued_label_id:
        out.print(f"then it is swapped for the label {called(config.queued_label_id)}")
    else:
        out.print("then it is taken off")
    for id in config.ignored_list_ids:
        out.print(f"cards of the list {called(id)} make none")
    for status, move in config.moves.items():
        source = f" out of {', '.join(map(called, move.out_of))}" if move.out_of else ""
        out.print(f"{status}: the card moves to the list {called(move.to)}{source}")
    if config.comment_template is not None:
        out.print("results are said in the board's own words:")
        for text in config.comment_template.splitlines():
            out.print(f"    {text}")
    if config.take_existing:
        out.print("labels that are there at the first look make jobs, too")


def check_line(check: Any) -> list[Any]:
    """Return the lines of one finding."""
    first = line(styled(f"{check.status:<4}", STYLES[check.status]), f"  {check.text}")
    return [first, styled(f"      → {check.then}", "cyan")] if check.then else [first]
