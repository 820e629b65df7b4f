"""Text and JSON rendering of board configurations and checks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from draftsman_tui.terminal.output import line, styled

if TYPE_CHECKING:
    from draftsman_bots.trello.records.board import BoardConfig, LabelRule
    from draftsman_tui.cli.app import App


def document(config: BoardConfig, **more: Any) -> dict[str, Any]:
    """Return the JSON form of a board."""
    return config.model_dump(mode="json") | more


def rule_text(rule: LabelRule) -> str:
    """Describe the jobs that a label creates."""
    return rule.text


def print_board(app: App, config: BoardConfig, names: Mapping[str, str] | None = None) -> None:
    """Print the configuration of a board.

    `names` maps ids of labels and lists to names; None if Trello could not be read.
    """
    out = app.out

    def name_of(id: str) -> str:
        if names is None:
            return id
        return repr(names[id]) if id in names else f"{id} (not on the board)"

    def label_of(id: str, stored_name: str) -> str:
        if names is not None and id in names:
            return names[id] or f"(no name) {id}"
        return f"{stored_name or '(no name)'} {id if names is None else name_of(id)}"

    out.print(line(styled(config.name, "bold"), f"  {config.board_id}  {config.url}"))
    for id, rule in config.labels.items():
        out.print(f"label {label_of(id, rule.name)} creates a job ({rule_text(rule)})")
    if config.queued_label_id:
        out.print(f"the label is then replaced by {name_of(config.queued_label_id)}")
    else:
        out.print("the label is then removed")
    for id in config.ignored_list_ids:
        out.print(f"list {name_of(id)}: ignored, its cards create no jobs")
    for status, move in config.moves.items():
        source = f" from {', '.join(map(name_of, move.out_of))}" if move.out_of else ""
        out.print(f"{status}: move the card{source} to {name_of(move.to)}")
    for text in _card_lines(config, name_of):
        out.print(text)


def _card_lines(config: BoardConfig, name_of: Callable[[str], str]) -> Iterator[str]:
    """Yield the settings of the cards of a board, beside labels and lists."""
    if config.checklists != "off":
        kinds = "questions and approvals" if config.checklists == "all" else "questions"
        yield f"checklists: the choices of {kinds} are items to check"
    if config.due_dates:
        yield "due dates: the expiry of a question, and a later date extends it"
    for use, id in config.custom_fields.items():
        yield f"custom field {name_of(id)}: the {use} of the job"
    if config.digest_card_id is not None:
        yield f"digests are comments on card {config.digest_card_id}"
    if config.comment_template is not None:
        yield "template of result comments:"
        yield from (f"    {text}" for text in config.comment_template.splitlines())
    if config.include_existing:
        yield "labels already on cards create jobs in the first poll"
