"""Effects of the bodies of the app's acks: texts, options, changed modals."""

from __future__ import annotations

from typing import Any

from draftsman_testing.slack.api_errors import ApiError
from draftsman_testing.slack.block_validation import options, whole_view
from draftsman_testing.slack.methods.registry import Args
from draftsman_testing.slack.methods.views import pushed, replaced
from draftsman_testing.slack.response_urls import answer
from draftsman_testing.slack.world import Channel, Hook, Json, View, World


def to_command(world: World, user: str, channel: Channel, body: Any) -> list[str]:
    """Show the response to a command; return its error."""
    args = Args(body if isinstance(body, dict) else {"text": str(body)})
    try:
        answer(world, Hook(user, channel.id, world.now()), args)
    except ApiError as refused:
        return [f"{refused.error} {refused.more}"]
    return []


def to_suggestion(body: Any) -> tuple[list[Json], list[str]]:
    """Return the options and the error of a response."""
    if problems := list(options(body)):
        return [], problems
    choices = list(body.get("options", []))
    for group in body.get("option_groups", []):
        choices += group["options"]
    return choices, []


def to_submission(world: World, view: View, body: Any) -> list[str]:
    """Apply the response to a modal; return its error."""
    content = body if isinstance(body, dict) else {}
    try:
        _respond(world, view, content)
    except ApiError as refused:
        return [f"{refused.error} {refused.more}"]
    return []


def _respond(world: World, view: View, content: Json) -> None:
    match content.get("response_action"):
        case None:
            close(world, view)
        case "clear":
            for view_id in world.stacks.pop(view.user, []):
                world.views.pop(view_id, None)
        case "update":
            replaced(world, view, whole_view(content.get("view"), ("modal",)))
        case "push":
            pushed(world, view.user, whole_view(content.get("view"), ("modal",)))
        case "errors":
            _errors(view, content.get("errors"))
        case other:
            raise ApiError("invalid_response_action", value=other)


def _errors(view: View, errors: Any) -> None:
    inputs = {block["block_id"] for block in view.content["blocks"] if block["type"] == "input"}
    if not isinstance(errors, dict) or not errors or errors.keys() - inputs:
        raise ApiError("invalid_errors", value=errors, inputs=sorted(inputs))
    if not all(isinstance(text, str) and text for text in errors.values()):
        raise ApiError("invalid_errors", value=errors)
    view.errors = dict(errors)


def close(world: World, view: View) -> None:
    """Close a modal, which uncovers the modal below it."""
    world.views.pop(view.content["id"], None)
    stack = world.stacks[view.user]
    if view.content["id"] in stack:
        stack.remove(view.content["id"])
