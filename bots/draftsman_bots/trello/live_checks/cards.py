"""Live checks of checklists, due dates, attachments and comments."""

from __future__ import annotations

import string as characters
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from draftsman.deliveries.channels.live_check import (
    AssumptionBroken,
    LiveCheck,
    NotTried,
    assumed,
    require,
)
from draftsman.jobs.requests.attachments import PendingFile
from draftsman_bots.conversation.attachments import FileRefused
from draftsman_bots.json_fields import nested, string
from draftsman_bots.trello.actions import ActionKind, parse_action
from draftsman_bots.trello.deliveries.due_dates import read_due
from draftsman_bots.trello.deliveries.markdown import escape
from draftsman_bots.trello.ids import parse_time
from draftsman_bots.trello.live_checks.place import NAME, ScratchBoard
from draftsman_bots.trello.requests.attachments import file_refs
from draftsman_bots.trello.transport.attachment_download import download_file

CHECKED: Final = "updateCheckItemStateOnCard"
CONTENT: Final = b"draftsman live check\n"
ODD_NAME: Final = "live check (1).txt"
DUE: Final = "2030-01-02T03:04:05.000Z"
NO_REMINDER: Final = (None, -1)
"""Values of `dueReminder` of a date without a reminder."""


async def _checked_item(place: ScratchBoard) -> tuple[dict[str, Any] | None, str, str]:
    """Check an item; return its action, if the board lists it, and the ids of both."""
    checklist = await place.trello.post(f"/cards/{place.card}/checklists", name=NAME)
    id = str(checklist["id"])
    item = await place.trello.post(f"/checklists/{id}/checkItems", name="1 · yes")
    await place.trello.put(f"/cards/{place.card}/checkItem/{item['id']}", state="complete")

    async def read() -> dict[str, Any] | None:
        page = await place.trello.get(f"/boards/{place.board}/actions", filter=CHECKED, limit=50)
        actions = [action for action in page if isinstance(action, dict)]
        return next((action for action in actions if action.get("type") == CHECKED), None)

    return await place.session.until(read), id, str(item["id"])


async def _listed_item(place: ScratchBoard) -> str:
    action, _, _ = await _checked_item(place)
    require(action is not None, "the actions of the board have no checked item")
    return f"the action is {CHECKED}"


async def _ids_of_item(place: ScratchBoard) -> str:
    raw, checklist, item = await _checked_item(place)
    if raw is None:
        raise NotTried("needs the action of a checked item")
    action = parse_action(raw)
    read = action is not None and (action.kind, action.checklist, action.item)
    expected = (ActionKind.ITEM_CHECKED, checklist, item)
    require(read == expected, f"its data is {nested(raw, 'data')}")
    return "the action has both ids"


async def _markdown_names(place: ScratchBoard) -> str:
    name = escape("*1* · a_b_c [x](y)")
    checklist = await place.trello.post(f"/cards/{place.card}/checklists", name="*a* [b](c)")
    await place.trello.post(f"/checklists/{checklist['id']}/checkItems", name=name)
    place.session.look(
        f"Open {place.url}: has a checklist the name *a* [b](c), and its item the name *1* · a_b_c"
        " [x](y), both with these signs and without a backslash?"
    )
    return "the person saw both names as they were meant"


async def _reminder(place: ScratchBoard) -> str:
    await place.trello.put(f"/cards/{place.card}", due=DUE)
    card = await place.trello.get(f"/cards/{place.card}", fields="due,dueReminder")
    reminder = card.get("dueReminder")
    require(reminder in NO_REMINDER, f"dueReminder is {reminder}")
    return f"dueReminder is {reminder}"


async def _removed_due(place: ScratchBoard) -> str:
    await place.trello.put(f"/cards/{place.card}", due=DUE)
    if await read_due(place.trello, place.card) != parse_time(DUE):
        raise NotTried("the due date was not set")
    await assumed(place.trello.write(place.trello.card(place.card).remove_due))
    due = await read_due(place.trello, place.card)
    require(due is None, f"the due date is {due}")
    return "the card has no due date"


async def _download(place: ScratchBoard) -> str:
    await place.trello.attach(place.card, "plain.txt", CONTENT)
    card = await place.trello.get(f"/cards/{place.card}", attachments="true")
    files = [file for file in file_refs(card, "") if file.name == "plain.txt"]
    if not files:
        raise NotTried("the card has no such attachment")
    try:
        file = PendingFile(0, 1, files[0].reference, files[0].name)
        content = await download_file(place.trello, file)
    except FileRefused as refused:
        raise AssumptionBroken(f"draftsman refused it: {refused}") from None
    require(content == CONTENT, f"the content is another, of {len(content)} bytes")
    return "the file was downloaded"


async def _address(place: ScratchBoard) -> str:
    file = await place.trello.attach(place.card, ODD_NAME, CONTENT)
    name = unquote(urlsplit(string(file, "url")).path.rpartition("/")[2])
    require(name == ODD_NAME, f"the file {ODD_NAME!r} has an address that ends with {name!r}")
    return f"the address ends with the name, {name!r}"


async def _limits(place: ScratchBoard) -> str:
    card = await place.trello.get(f"/cards/{place.card}", fields="limits")
    limit = nested(card, "limits", "checklists", "perCard")
    if limit.get("status", "ok") != "ok":
        raise NotTried(f"the card is at its limits: {limit}")
    await assumed(place.trello.post(f"/cards/{place.card}/checklists", name="below the limits"))
    return f"a checklist was added below {limit.get('disableAt', 'a limit that Trello hides')}"


async def _line_breaks(place: ScratchBoard) -> str:
    await _comment(place, "ONE\nTWO\nTHREE")
    place.session.look(f"Open {place.url}: are ONE, TWO and THREE in a comment in three lines?")
    return "the person saw three lines"


async def _escapes(place: ScratchBoard) -> str:
    table = "| a | b |\n|---|---|\n| c | d |"
    await _comment(place, f"{escape(characters.punctuation)} SIGNS\n\n{table}\n\n<b>HTML</b>")
    place.session.look(
        f"Open {place.url}: does the last comment show {characters.punctuation} SIGNS without a"
        " further backslash, and neither a table nor bold text?"
    )
    return "the person saw the signs, and neither a table nor bold text"


async def _comment(place: ScratchBoard, text: str) -> None:
    await place.trello.post(f"/cards/{place.card}/actions/comments", text=text)


CHECKS: Final = (
    LiveCheck(
        name="checked-item-listed",
        assumption=f"`{CHECKED}` is listed by `/boards/ID/actions`, as the list of included types"
        " says",
        otherwise="Without a webhook a checked item is not seen; comments still answer.",
        run=_listed_item,
    ),
    LiveCheck(
        name="checked-item-ids",
        assumption="It has the ids of the checklist and the item, as in webhooks of 2017",
        otherwise="The action is ignored.",
        run=_ids_of_item,
    ),
    LiveCheck(
        name="names-of-items",
        assumption="Names of items are Markdown, names of checklists are text",
        otherwise="Backslashes are visible before signs such as `*`.",
        run=_markdown_names,
    ),
    LiveCheck(
        name="due-without-reminder",
        assumption="A due date that the API sets has no reminder",
        otherwise="Members of the card get Trello's own reminder of the date.",
        run=_reminder,
    ),
    LiveCheck(
        name="due-removed",
        assumption="`PUT /cards/ID/due` with the value `null` removes it, as py-trello does",
        otherwise="The date stays; health has a note.",
        run=_removed_due,
    ),
    LiveCheck(
        name="download",
        assumption="A download is answered, or redirects to an address that needs no token",
        otherwise="The file is refused, and `draftsman show` has the reason.",
        run=_download,
    ),
    LiveCheck(
        name="address-of-file",
        assumption="The address of a file ends with its name, as in the announcement of 2020",
        otherwise="The file is refused with `The requested resource was not found.`",
        run=_address,
    ),
    LiveCheck(
        name="checklist-below-limits",
        assumption="A card takes another checklist below the limits in its `limits`",
        otherwise="Health has a note, and comments answer.",
        run=_limits,
    ),
    LiveCheck(
        name="line-breaks",
        assumption="A single line break in a comment is shown as one",
        otherwise="Lines of a status run together.",
        run=_line_breaks,
    ),
    LiveCheck(
        name="escapes",
        assumption="Tables and HTML are not rendered, and a backslash escapes every sign, as in"
        " CommonMark",
        otherwise="Text of people is formatted, or backslashes are visible; it still mentions no"
        " user.",
        run=_escapes,
    ),
)
