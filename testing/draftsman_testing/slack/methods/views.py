"""views.*: modals and home tabs."""

from __future__ import annotations

import hashlib
import json
from typing import Final

from draftsman_testing.slack.api_errors import ApiError, invalid_arguments
from draftsman_testing.slack.block_validation import whole_view
from draftsman_testing.slack.message_store import named
from draftsman_testing.slack.methods.registry import Args, method
from draftsman_testing.slack.world import TRIGGER_LIFE, Json, Trigger, View, World

STACK_MOST: Final = 3
"""Modals on a stack."""


def _trigger(world: World, args: Args) -> Trigger:
    content = args.need("trigger_id")
    trigger = world.triggers.get(content)
    if trigger is None:
        raise ApiError("invalid_trigger_id")
    if trigger.used:
        raise ApiError("exchanged_trigger_id")
    if world.now() - trigger.born > TRIGGER_LIFE:
        raise ApiError("expired_trigger_id")
    return trigger


def _modal(args: Args, *kinds: str) -> Json:
    return whole_view(args.json("view", "invalid_arguments"), kinds)


@method("views.open")
def views_open(world: World, args: Args) -> Json:
    """Open a modal for the person of the trigger."""
    trigger = _trigger(world, args)
    view = _modal(args, "modal")
    _not_twice(world, view)
    trigger.used = True
    return {"view": shown(world, trigger.user, view)}


@method("views.push")
def views_push(world: World, args: Args) -> Json:
    """Push a modal onto the stack of the trigger."""
    trigger = _trigger(world, args)
    view = _modal(args, "modal")
    _not_twice(world, view)
    if trigger.view not in world.stacks[trigger.user]:
        raise ApiError("not_found")
    if len(world.stacks[trigger.user]) >= STACK_MOST:
        raise ApiError("push_limit_reached")
    trigger.used = True
    return {"view": pushed(world, trigger.user, view)}


def _not_twice(world: World, view: Json) -> None:
    name = view.get("external_id")
    if name and any(item.content.get("external_id") == name for item in world.views.values()):
        raise ApiError("duplicate_external_id")


def shown(world: World, user: str, view: Json) -> Json:
    """Open a modal in place of all open modals; return it as Slack stores it."""
    for old in world.stacks.pop(user, []):
        world.views.pop(old, None)
    return pushed(world, user, view)


def pushed(world: World, user: str, view: Json) -> Json:
    """Push a modal; return it as Slack stores it."""
    created = _kept(world, view, world.id("V"))
    world.views[created["id"]] = View(user, created)
    world.stacks[user].append(created["id"])
    created["root_view_id"] = world.stacks[user][0]
    created["previous_view_id"] = world.stacks[user][-2] if len(world.stacks[user]) > 1 else None
    return created


@method("views.update")
def views_update(world: World, args: Args) -> Json:
    """Update an open modal or a home tab."""
    view = _modal(args, "modal", "home")
    result = _found(world, args)
    if args.maybe("hash") is not None and args["hash"] != result.content["hash"]:
        raise ApiError("hash_conflict")
    return {"view": replaced(world, result, view)}


def _found(world: World, args: Args) -> View:
    if args.maybe("view_id") is None and args.maybe("external_id") is None:
        raise invalid_arguments("invalid_arguments", ["must provide either view_id or external_id"])
    for view in (*world.views.values(), *world.homes.values()):
        if args.get("view_id") == view.content["id"]:
            return view
        if args.maybe("external_id") and args["external_id"] == view.content.get("external_id"):
            return view
    raise ApiError("not_found")


def replaced(world: World, result: View, view: Json) -> Json:
    """Replace a view; return it as Slack stores it."""
    before = result.content
    result.content = _kept(world, view, before["id"])
    result.errors = {}
    for name in ("root_view_id", "previous_view_id"):
        result.content[name] = before.get(name)
    return result.content


@method("views.publish")
def views_publish(world: World, args: Args) -> Json:
    """Publish a home tab."""
    user = args.need("user_id")
    if user not in world.users:
        raise invalid_arguments("invalid_arguments", ["invalid user_id"])
    if not world.home_enabled:
        raise ApiError("not_enabled")
    view = _modal(args, "home")
    old = world.homes.get(user)
    if old and args.maybe("hash") is not None and args["hash"] != old.content["hash"]:
        raise ApiError("hash_conflict")
    created = _kept(world, view, old.content["id"] if old else world.id("V"))
    world.homes[user] = View(user, created)
    return {"view": created}


def _kept(world: World, view: Json, view_id: str) -> Json:
    empty = {"callback_id": "", "private_metadata": "", "external_id": "", "submit": None}
    created: Json = {
        "id": view_id,
        "team_id": world.team,
        "app_id": world.app,
        "bot_id": world.bot,
        "notify_on_close": False,
        "clear_on_close": False,
        "state": {"values": {}},
        **empty,
        **view,
        "blocks": named(world, view["blocks"]),
    }
    digest = hashlib.sha256(json.dumps([created, world.ts()]).encode()).hexdigest()
    created["hash"] = f"{world.ts().partition('.')[0]}.{digest[:8]}"
    return created
