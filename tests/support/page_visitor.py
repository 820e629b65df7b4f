"""A visitor of a page of a fake: reads it, presses its buttons and writes, over HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
from bs4 import BeautifulSoup, Tag

from draftsman_testing.waits import until


class PageVisitor:
    """A person on the page, by the name of their button in its head."""

    def __init__(self, client: httpx.AsyncClient, url: str) -> None:
        self._client = client
        self._url = url
        self._id = ""

    async def become(self, name: str) -> None:
        """Choose who looks at the page."""
        page = await self.page()
        [button] = page.select(f'header button:-soup-contains("{name}")')
        self._id = str(button["value"])

    async def page(self) -> BeautifulSoup:
        """Return the page as it is now."""
        query = {"as": self._id} if self._id else {}
        response = await self._client.get(self._url, params=query)
        assert response.status_code == 200, response.text
        return BeautifulSoup(response.text, "html.parser")

    async def text(self) -> str:
        """Return the text of the page as it is now."""
        return part_of(await self.page(), "main").get_text(" ", strip=True)

    async def sees(self, part: str) -> None:
        """Wait until the page has a text."""

        async def look() -> bool:
            return part in await self.text()

        await until(look, f"{part!r} on the page")

    async def press(self, label: str, **typed: str) -> None:
        """Wait for a button, and press the last with this label; `typed` are values of fields."""

        async def look() -> bool:
            return bool(_buttons(await self.page(), label))

        await until(look, f"the button {label!r}")
        button = _buttons(await self.page(), label)[-1]
        form = button.find_parent("form")
        assert form is not None
        data = dict(_fields(form)) | typed
        if "name" in button.attrs:
            data[str(button["name"])] = str(button["value"])
        response = await self._client.post(self._url, params={"as": self._id}, data=data)
        assert response.status_code == 200, response.text


def part_of(page: BeautifulSoup, name: str) -> Tag:
    """Return the only element with this name."""
    [part] = page.find_all(name)
    return part


def _buttons(page: BeautifulSoup, label: str) -> list[Tag]:
    buttons = part_of(page, "main").find_all("button")
    return [item for item in buttons if item.get_text(strip=True) == label]


def _fields(form: Tag) -> list[tuple[str, str]]:
    fields = [(str(item["name"]), str(item.get("value", ""))) for item in form.find_all("input")]
    fields += [(str(item["name"]), item.text) for item in form.find_all("textarea")]
    for item in form.find_all("select"):
        chosen = item.find("option", selected=True)
        fields.append((str(item["name"]), "" if chosen is None else str(chosen["value"])))
    return fields


@asynccontextmanager
async def visiting(url: str) -> AsyncIterator[PageVisitor]:
    """Visit a page for the block."""
    async with httpx.AsyncClient(follow_redirects=True, timeout=30) as client:
        yield PageVisitor(client, url)
