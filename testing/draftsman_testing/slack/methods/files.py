"""files.*: an upload in three steps. The bytes are posted to `/upload/FILE`.

The content is at `url_private`, for requests with the token of the app and the scope files:read
(docs.slack.dev, "Working with files": without them Slack answers with a redirect to its sign-in).
A remote file has the mode `external`, and its `url_private` may be of any host (files.remote.info).
An event of a shared channel may have the id only, with `file_access: check_file_info`. The media
type of an upload follows its name, and only a completed upload has content.
"""

from __future__ import annotations

import mimetypes
from typing import Any

from draftsman_testing.slack.api_errors import ApiError, invalid_arguments
from draftsman_testing.slack.block_validation import message_blocks
from draftsman_testing.slack.message_store import put
from draftsman_testing.slack.methods.chat import by_bot
from draftsman_testing.slack.methods.registry import Args, method, writable_channel
from draftsman_testing.slack.world import Json, World


@method("files.getUploadURLExternal", "files:write")
def get_upload_url(world: World, args: Args) -> Json:
    name = args.need("filename")
    try:
        length = int(args.need("length"))
    except ValueError:
        raise invalid_arguments("invalid_arguments", ["length must be an integer"]) from None
    if length < 1:
        raise invalid_arguments("invalid_arguments", ["length must be more than 0"])
    file_id = world.id("F")
    file: Json = {"id": file_id, "name": name, "length": length, "data": None}
    mimetype = mimetypes.guess_type(name)[0] or "text/plain"
    world.files[file_id] = file | {"mimetype": mimetype}
    return {"upload_url": f"{world.base}/upload/{file_id}", "file_id": file_id}


def receive(world: World, file_id: str, data: bytes) -> str | None:
    """Store the bytes; return the error."""
    file = world.files.get(file_id)
    if file is None or file.get("shared") is not None:
        return "not found"
    if len(data) != file["length"]:
        return f"expected {file['length']} bytes, got {len(data)}"
    file["data"] = data
    return None


@method("files.completeUploadExternal", "files:write")
def complete_upload(world: World, args: Args) -> Json:
    """Create files from the uploads, and post them if a channel is given."""
    requested = args.json("files", "invalid_arguments")
    if not isinstance(requested, list) or not requested:
        raise invalid_arguments("invalid_arguments", ["missing required field: files"])
    files = [_uploaded(world, item) for item in requested]
    names = [args.maybe("channel_id"), *(args.maybe("channels") or "").split(",")]
    channels = [writable_channel(world, name) for name in names if name]
    content: Json = {}
    if (blocks := args.json("blocks", "invalid_blocks_format")) is not None:
        content["blocks"] = message_blocks(blocks)
    for file, entry in zip(files, requested, strict=True):
        file["title"] = entry.get("title") or file["name"]
        file["shared"] = [channel.id for channel in channels]
    messages = [_told(world, file) for file in files]
    for channel in channels:
        message = {
            "text": args.get("initial_comment", ""),
            "files": messages,
            "upload": True,
        } | content
        put(world, channel, by_bot(world) | message, args.maybe("thread_ts"))
    return {"files": messages}


def _uploaded(world: World, requested: Any) -> Json:
    file = world.files.get(str(requested.get("id"))) if isinstance(requested, dict) else None
    if file is None:
        raise ApiError("file_not_found")
    if file["data"] is None:
        raise ApiError("file_update_failed")
    if file.get("shared") is not None:
        raise ApiError("file_already_completed")
    return file


def _told(world: World, file: Json) -> Json:
    url = f"{world.base}/files-pri/{world.team}-{file['id']}"
    return {
        "id": file["id"],
        "name": file["name"],
        "title": file["title"],
        "mimetype": file["mimetype"],
        "mode": "hosted",
        "is_external": False,
        "size": file["length"],
        "user": file.get("user", world.bot_user),
        "url_private": f"{url}/{file['name']}",
        "url_private_download": f"{url}/download/{file['name']}",
        "permalink": f"https://fake.slack.com/files/{world.bot_user}/{file['id']}",
        **file.get("about", {}),
    }


def share(world: World, user: str, name: str, data: bytes, mimetype: str, about: Json) -> Json:
    """Add the file of a person; return its object in events."""
    file_id = world.id("F")
    file = {"id": file_id, "name": name, "title": name, "length": len(data), "data": data}
    world.files[file_id] = file | {"shared": [], "user": user, "mimetype": mimetype, "about": about}
    return _told(world, world.files[file_id])


def content(world: World, name: str, token: str) -> Json | None:
    """Return a file that this token may download, by the name in its URL."""
    file = world.files.get(name.removeprefix(f"{world.team}-"))
    allowed = token == world.bot_token and world.account is None and "files:read" in world.scopes
    return file if allowed and file is not None and file.get("shared") is not None else None


@method("files.info", "files:read")
def files_info(world: World, args: Args) -> Json:
    file = world.files.get(args.need("file"))
    if file is None or file.get("shared") is None:
        raise ApiError("file_not_found")
    return {"file": _told(world, file)}


@method("files.delete", "files:write")
def files_delete(world: World, args: Args) -> Json:
    file = world.files.pop(args.need("file"), None)
    if file is None:
        raise ApiError("file_not_found")
    return {}
