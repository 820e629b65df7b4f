"""The payloads that Slack delivers."""

from __future__ import annotations

import copy
from typing import Any

from draftsman_testing.slack.message_store import controls
from draftsman_testing.slack.world import Channel, Hook, Json, View, World

KINDS = {"channel": "channel", "group": "group", "im": "im", "mpim": "mpim"}


def organization(world: World, person: Json) -> str | None:
    """Return a person's organization; colleagues of other workspaces name theirs."""
    values: str | None = person.get("enterprise_id")
    return values or (world.enterprise if person["team_id"] == world.team else None)


def event(world: World, inner: Json, shared: bool = False) -> Json:
    """Return the outer event.

    `team_id` and `enterprise_id` are a pair: for a message they are its author's, for a mention
    those of the installation (bolt-python, tests/slack_bolt/request/test_internals.py).
    """
    writer = world.users.get(str(inner.get("user"))) if inner["type"] == "message" else None
    team = writer["team_id"] if writer else world.team
    org = organization(world, writer) if writer else world.enterprise
    authorization = {
        "enterprise_id": world.enterprise,
        "team_id": world.team,
        "user_id": world.bot_user,
        "is_bot": True,
        "is_enterprise_install": False,
    }
    return {
        "token": "verification",
        "team_id": team,
        **({"enterprise_id": org} if org else {}),
        "context_team_id": world.team,
        "context_enterprise_id": world.enterprise,
        "api_app_id": world.app,
        "event": inner,
        "type": "event_callback",
        "event_id": world.id("Ev"),
        "event_time": int(world.now()),
        "authorizations": [authorization],
        "is_ext_shared_channel": shared,
        "event_context": world.id("EC"),
    }


def spoken(world: World, channel: Channel, message: Json, kind: str) -> Json:
    """Return the inner event of a message, or of a mention.

    A message names its author's workspace in `team`; a mention there names that of the app, and the
    author's in `user_team`: in a Grid the organization (the same tests of bolt-python).
    """
    inner = {name: value for name, value in message.items() if name != "metadata"}
    inner |= {"type": kind, "channel": channel.id, "event_ts": message["ts"]}
    if kind == "message":
        inner["channel_type"] = channel.kind
    else:
        inner.pop("subtype", None)
        writer = world.users.get(str(message.get("user")), {"team_id": world.team})
        if writer["team_id"] != world.team:
            team = organization(world, writer) or writer["team_id"]
            inner |= {"team": world.team, "user_team": team, "source_team": team}
    return copy.deepcopy(inner)


def changed(world: World, channel: Channel, before: Json, after: Json) -> Json:
    """Return the inner event of an edited message."""
    ts = world.ts()
    return {
        "type": "message",
        "subtype": "message_changed",
        "hidden": True,
        "channel": channel.id,
        "channel_type": channel.kind,
        "ts": ts,
        "event_ts": ts,
        "message": copy.deepcopy(after),
        "previous_message": copy.deepcopy(before),
    }


def deleted(world: World, channel: Channel, before: Json) -> Json:
    """Return the inner event of a deleted message."""
    ts = world.ts()
    return {
        "type": "message",
        "subtype": "message_deleted",
        "hidden": True,
        "channel": channel.id,
        "channel_type": channel.kind,
        "ts": ts,
        "event_ts": ts,
        "deleted_ts": before["ts"],
        "previous_message": copy.deepcopy(before),
    }


def command(world: World, user: str, channel: Channel, name: str, text: str) -> Json:
    """Return a slash command; every value is a string."""
    person = world.users[user]
    return {
        "token": "verification",
        "team_id": person["team_id"],
        "team_domain": "fake",
        "channel_id": channel.id,
        "channel_name": channel.name,
        "user_id": user,
        "user_name": person["name"],
        "command": name,
        "text": text,
        "api_app_id": world.app,
        **({"enterprise_id": org} if (org := organization(world, person)) else {}),
        "is_enterprise_install": "false",
        "response_url": world.hook(Hook(user, channel.id, world.now())),
        "trigger_id": world.trigger(user),
    }


def interaction(world: World, kind: str, user: str, view: str | None = None) -> Json:
    """Return the common fields of all interactions.

    `team` is the app's workspace, `user.team_id` a workspace of the person: in a Grid any of them,
    also for members of this workspace (java-slack-sdk issue 1041, bolt-js issue 1875).
    """
    person = world.users[user]
    grid = {"id": world.enterprise, "name": "Fake Grid"} if world.enterprise else None
    org = {"enterprise_id": world.enterprise, "enterprise_name": "Fake Grid"} if grid else {}
    return {
        "type": kind,
        "token": "verification",
        "api_app_id": world.app,
        "team": {"id": world.team, "domain": "fake", **org},
        "user": {
            "id": user,
            "username": person["name"],
            "name": person["name"],
            "team_id": person["team_id"],
        },
        "enterprise": grid,
        "is_enterprise_install": False,
        "trigger_id": world.trigger(user, view),
    }


def place(channel: Channel) -> Json:
    """Return a channel as interactions name it."""
    return {"id": channel.id, "name": channel.name}


def in_message(
    world: World, user: str, channel: Channel, message: Json, *, ephemeral: bool
) -> Json:
    """Return the container fields of an interaction in a message."""
    thread = message.get("thread_ts")
    container: Json = {
        "type": "message",
        "message_ts": message["ts"],
        "channel_id": channel.id,
        "is_ephemeral": ephemeral,
    }
    if thread:
        container["thread_ts"] = thread
    hook = Hook(user, channel.id, world.now(), message["ts"], ephemeral, thread)
    content: Json = {
        "container": container,
        "channel": place(channel),
        "state": {"values": state(message.get("blocks", []), {})},
        "response_url": world.hook(hook),
    }
    if not ephemeral:
        content["message"] = {k: v for k, v in copy.deepcopy(message).items() if k != "metadata"}
    return content


def in_view(view: View, values: dict[str, Any]) -> Json:
    """Return a view with its input."""
    content = copy.deepcopy(view.content)
    content["state"] = {"values": state(content["blocks"], values)}
    return content


def state(blocks: list[Json], values: dict[str, Any]) -> Json:
    """Return the state of every control, by block and action."""
    result: Json = {}
    for block in blocks:
        for element in controls(block):
            if element["type"] in {"button", "overflow"}:
                continue
            name = block["block_id"]
            action = element["action_id"]
            value = values.get(name, values.get(action))
            result.setdefault(name, {})[action] = filled(element, value)
    return result


def filled(element: Json, value: Any) -> Json:
    """Return a control with a value; None clears it."""
    kind = element["type"]
    content: Json = {"type": kind}
    if kind in {"checkboxes", "multi_static_select", "multi_external_select"}:
        start = [option["value"] for option in element.get("initial_options", [])]
        selected = start if value is None else value
        content["selected_options"] = [option(element, item) for item in selected]
    elif kind in {"static_select", "external_select", "radio_buttons", "overflow"}:
        start = element.get("initial_option", {}).get("value")
        selected = start if value is None else value
        content["selected_option"] = None if selected is None else option(element, selected)
    elif kind.startswith("multi_"):
        content[f"selected_{kind.removeprefix('multi_').removesuffix('_select')}"] = value or []
    elif kind.endswith("_select"):
        list_name = kind.removesuffix("s_select")
        content[f"selected_{list_name}"] = value or element.get(f"initial_{list_name}")
    elif kind in {"datepicker", "timepicker", "datetimepicker"}:
        list_name = {"datepicker": "date", "timepicker": "time"}.get(kind, "date_time")
        content[f"selected_{list_name}"] = value or element.get(f"initial_{list_name}")
    elif kind == "rich_text_input":
        content["rich_text_value"] = value
    else:
        content["value"] = element.get("initial_value") if value is None else value
    return content


def option(element: Json, value: str) -> Json:
    """Return the option with this value or text; an external option is as it was shown."""
    offered = list(element.get("options", []))
    for group in element.get("option_groups", []):
        offered += group["options"]
    for item in offered:
        if value in (item["value"], item["text"]["text"]):
            return copy.deepcopy(dict(item))
    if offered:
        raise LookupError(f"no option {value!r} among {[item['value'] for item in offered]}")
    return {"text": {"type": "plain_text", "text": value, "emoji": True}, "value": value}


def action(world: World, block: Json, element: Json, value: Any) -> Json:
    """Return the action of a control."""
    content: Json = {
        "action_id": element["action_id"],
        "block_id": block["block_id"],
        "type": element["type"],
        "action_ts": world.ts(),
    }
    if element["type"] == "button":
        content["text"] = copy.deepcopy(element["text"])
        content |= {name: element[name] for name in ("value", "style") if name in element}
        return content
    return content | filled(element, value)
