"""The web inbox in a real browser, on a phone and on a desk, with scripts and without.

Needs Chromium (on Debian: apt-get install chromium), and for the checks of accessibility axe-core:
AXE_CORE is the path of its axe.min.js (npm install axe-core). `WEB_PICTURES` is a folder for
pictures of each page.
"""

from __future__ import annotations

import asyncio
import base64
import os
import socket
from collections.abc import AsyncIterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import pytest

from draftsman.agent_runs.activity.activity import Activity, ActivityKind
from draftsman.entities.registry import listed_entities
from draftsman.jobs.job import Status
from draftsman.jobs.runs.quota import QuotaLimit
from draftsman.questions.question import Decision
from draftsman.questions.question_spec import Choice, QuestionSpec
from draftsman.runtime import Runtime
from draftsman_testing.factories import GATE, REVIEW, Factory
from draftsman_testing.people import People
from draftsman_testing.waits import until
from tests.bots.web.test_start import PATH as FORM
from tests.bots.web.test_start import WEEKLY
from tests.bots.web.web_side import Inbox, serving
from tests.soak.browser import Browser, Page, browsing, find_chromium
from tests.support.described_types import registered

WIDTHS: Final = {390: 844, 1440: 900}
"""Width and height of a phone and of a desk."""
PATCH: Final = """diff --git a/shop/prices.py b/shop/prices.py
--- a/shop/prices.py
+++ b/shop/prices.py
@@ -10,5 +10,6 @@ def total(items: list[Item], rate: Decimal = Decimal("0.19")) -> Decimal:
     subtotal = sum(item.price for item in items)
-    return subtotal * 1.19
+    tax = (subtotal * rate).quantize(CENT, rounding=ROUND_HALF_UP)
+    return subtotal + tax


 def discount(total: Decimal, percent: int) -> Decimal:
diff --git a/tests/test_prices.py b/tests/test_prices.py
new file mode 100644
--- /dev/null
+++ b/tests/test_prices.py
@@ -0,0 +1,4 @@
+def test_tax_is_rounded_half_up() -> None:
+    assert total([Item(Decimal("0.05"))]) == Decimal("0.06")
+
+
"""
CHOICES: Final = QuestionSpec(
    key="rounding",
    text="Which rounding does the price list need?",
    context="prices.py multiplies floats: 0.05 * 1.19 = 0.059500000000000004\n\nThe invoices of "
    "March round half up, those of April half to even.",
    choices=(
        Choice(value="up", label="Half up", description="As the invoices of March."),
        Choice(value="even", label="Half to even", description="As the invoices of April."),
    ),
    freeform=True,
)
MIDDLE: Final = """(() => {
  const element = document.querySelector(%r);
  element.scrollIntoView({block: "center"});
  const box = element.getBoundingClientRect();
  return [box.x + box.width / 2, box.y + box.height / 2];
})()"""
OVERFLOW: Final = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
SMALL_TARGETS: Final = """[...document.querySelectorAll("button:not(.n button), .button, select,"
  + " textarea, nav a, input:not([type=hidden]), .choice, summary")].filter((element) => {
  const box = (element.closest("label") || element).getBoundingClientRect();
  return box.width && box.height < 43.5;
}).map((element) => element.outerHTML.slice(0, 100))"""
SCROLL: Final = "scrollTo(0, %s * document.documentElement.scrollHeight)"
OUT_OF_REACH: Final = """[...document.querySelectorAll(".decision button")].filter((button) => {
  const box = button.getBoundingClientRect();
  const hit = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2);
  return !button.contains(hit);
}).map((button) => button.textContent)"""
"""The buttons of the decision that are not on the screen."""
TOP_OF_DIFF: Final = "document.querySelector('.diff').getBoundingClientRect().top"
COVERED: Final = """[...document.querySelectorAll("#decide textarea")].filter((field) => {
  field.scrollIntoView({block: "nearest"});
  const bar = document.querySelector(".decision").getBoundingClientRect();
  return field.getBoundingClientRect().bottom > bar.top;
}).map((field) => field.id).join()"""
IN_SIGHT: Final = """(() => {
  const problem = document.querySelector("#reason-problem")?.getBoundingClientRect();
  const bar = document.querySelector(".decision")?.getBoundingClientRect();
  return problem && document.activeElement.id === "reason"
    && problem.top > 0 && problem.bottom < bar.top;
})()"""
LONG_NAMES: Final = """(() => {
  const long = "etl:import-of-customer-master-data-from-legacy-warehouse".repeat(2);
  for (const cell of document.querySelectorAll(".rows td")) {
    const walker = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) if (walker.currentNode.data.trim()) walker.currentNode.data = long;
  }
  return document.querySelectorAll(".rows td").length;
})()"""
"""Writes a long name into each cell of a list; returns how many there are."""
LONG_TITLES: Final = """(() => {
  const address = "https://host4.example.org/" + "x".repeat(120);
  for (const cell of document.querySelectorAll(".rows td.long")) {
    const walker = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) if (walker.currentNode.data.trim()) walker.currentNode.data = address;
  }
  return [...document.querySelectorAll(".card.rows")].some(
    (card) => card.scrollWidth > card.clientWidth
  );
})()"""
"""Writes an address into the long cells of a list; returns whether a list overflows its card."""
BROKEN_WORDS: Final = """[...document.querySelectorAll(".rows td")].filter((cell) => {
  const wrap = getComputedStyle(cell);
  const width = cell.clientWidth - parseFloat(wrap.paddingLeft) - parseFloat(wrap.paddingRight);
  const measure = document.createElement("span");
  measure.style.cssText = "position: absolute; white-space: nowrap; visibility: hidden";
  cell.append(measure);
  const words = cell.innerText.split(/\\s+/).map((word) => {
    measure.textContent = word;
    return measure.getBoundingClientRect().width;
  });
  measure.remove();
  return Math.max(0, ...words) > width + 1;
}).map((cell) => `${cell.dataset.head}: ${cell.innerText}`)"""
"""The cells of a list in which a word is broken."""
AXE: Final = """axe.run(document, {resultTypes: ["violations"]}).then((found) => found.violations
  .filter((item) => ["serious", "critical"].includes(item.impact))
  .map((item) => `${item.id}: ${item.nodes.map((node) => node.html).join(" ").slice(0, 300)}`))"""


@pytest.fixture
async def browser(tmp_path: Path) -> AsyncIterator[Browser]:
    """Provide a browser."""
    if (program := find_chromium()) is None:
        pytest.skip("there is no Chromium here")
    async with browsing(program, tmp_path / "browser") as started:
        yield started


@pytest.fixture
async def inbox(rt: Runtime, request: pytest.FixtureRequest) -> AsyncIterator[Inbox]:
    """Provide a server with the address that browsers use, and an undo window of `param`."""
    undo = getattr(request, "param", 0)
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    async with serving(rt, listen=address, url=f"http://{address}", undo=undo) as inbox:
        yield inbox


@pytest.fixture
async def weekly(rt: Runtime) -> AsyncIterator[None]:
    """Provide a described type, which is started from a form."""
    async with registered(rt, WEEKLY):
        yield


class Tab:
    """A tab of a signed-in person."""

    def __init__(self, page: Page, origin: str) -> None:
        self.page = page
        self.origin = origin

    async def go(self, path: str) -> None:
        """Open a page, and wait until it is complete."""
        await self.page.go(self.origin + path)
        await self.is_at(path)

    async def is_at(self, path: str) -> None:
        """Wait until the page of this path is complete."""

        async def look() -> bool:
            place = "location.pathname + location.search + ' ' + document.readyState"
            return str(await self.page.evaluate(place)) == f"{path} complete"

        await until(look, path)

    async def click(self, selector: str) -> None:
        """Click into the middle of an element, as a finger does."""
        where = await self.page.evaluate(MIDDLE % selector)
        for kind in ("mousePressed", "mouseReleased"):
            await self.page.tell(
                "Input.dispatchMouseEvent",
                type=kind,
                x=where[0],
                y=where[1],
                button="left",
                clickCount=1,
            )

    async def text(self) -> str:
        """Return the visible text."""
        return str(await self.page.evaluate("document.body?.innerText ?? ''"))

    async def shows(self, text: str, of: str = "document.body?.innerText ?? ''") -> None:
        """Wait until the page, or the result of a script, has a text."""

        async def look() -> bool:
            return text in str(await self.page.evaluate(of))

        await until(look, text)

    async def is_empty(self, of: str) -> None:
        """Wait until the result of a script is empty."""

        async def look() -> bool:
            return not await self.page.evaluate(of)

        await until(look, of)

    async def online(self, *, is_online: bool) -> None:
        """Connect the browser with the network, or disconnect it."""
        limits = {"latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
        await self.page.tell("Network.emulateNetworkConditions", offline=not is_online, **limits)

    async def resize(self, width: int, *, dark: bool = False) -> None:
        """Show the page on a screen of this width."""
        metrics = {"width": width, "height": WIDTHS[width], "deviceScaleFactor": 2}
        mobile = width < 600
        await self.page.tell("Emulation.setDeviceMetricsOverride", mobile=mobile, **metrics)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        await self.page.tell("Emulation.setEmulatedMedia", features=[scheme])

    async def picture(self, name: str, *, whole: bool = True) -> None:
        """Store a picture of the page, or of what the screen shows, if a folder is given."""
        if (folder := os.environ.get("WEB_PICTURES")) is None:
            return
        shot: dict[str, Any] = await self.page.tell(
            "Page.captureScreenshot", format="png", captureBeyondViewport=whole
        )
        path = Path(folder) / f"{name}.png"
        await asyncio.to_thread(path.write_bytes, base64.b64decode(shot["data"]))

    async def problems(self) -> list[str]:
        """Return serious and critical findings of axe; none without axe-core."""
        if (path := os.environ.get("AXE_CORE")) is None:
            return []
        await self.page.evaluate(await asyncio.to_thread(Path(path).read_text))
        return list(await self.page.evaluate(AXE))


async def sign_in(browser: Browser, inbox: Inbox, people: People, name: str) -> Tab:
    """Open a link of a person in a new tab, and sign in."""
    token, _ = await inbox.sessions.create_link(getattr(people, name))
    origin = inbox.service.context.settings.origin
    tab = Tab(await browser.open(f"{origin}/sign-in/{token}"), origin)
    await tab.is_at(f"/sign-in/{token}")
    await tab.picture("sign-in")
    assert await tab.problems() == []
    await tab.click("main button")
    await tab.is_at("/")
    return tab


async def filled(make: Factory, people: People, rt: Runtime) -> dict[str, str]:
    """Create jobs in many states; return the paths of their pages."""
    texts = {"title": "Round prices half up", "text": "Prices on invoices are wrong by a cent."}
    choice = await make.asked(CHOICES, actor=people.erin, **texts)
    work = await make.running(actor=people.anna, title="Move the shop to Python 3.14", tags=("t",))
    await rt.changes.store(work.lease, PATCH.encode())
    gate = GATE.model_copy(
        update={
            "approvers": ("erin", "dave"),
            "text": "Push the branch of D-13 to origin?",
            "action": {"do": "push", "branch": "draftsman/D-13", "to": "origin"},
            "context": "All checks passed: ruff, mypy, 214 tests.",
        }
    )
    await rt.asking.ask(work.lease, gate)
    await make.asked(actor=people.anna, title="Which color does the button have?")
    await make.failed(title="Delete unused feature flags")
    dead = await make.dead(title="Upload the nightly report", actor=people.erin)
    own = await make.asked(gate, title="Deploy the shop", actor=people.erin)
    await make.queued(title="Translate the pages of the shop into the five languages of its users")
    await make.canceled(title="Rename the table of customers")
    done = await make.completed({"summary": "Three flags removed"}, title="Remove feature flags")
    running = await make.running(title="Update dependencies")
    await rt.checkpoints.log(running.lease, 1, "collecting packages\ncompiling\n")
    items = [Activity(ActivityKind.MESSAGE, "I will update the lock file first.\n")]
    await rt.activity.append(running.lease, 1, items, QuotaLimit(100, 100_000))
    return {
        "inbox": "/",
        "question": f"/questions/{choice.name}/1",
        "approval": f"/questions/{work.name}/1",
        "jobs": "/jobs",
        "job": f"/jobs/{running.name}",
        "finished": f"/jobs/D-{done}",
        "failure": f"/jobs/D-{dead}",
        "refused": f"/questions/{own.name}/1",
        "changes": f"/jobs/{work.name}/changes",
        "lists": "/lists",
        **{f"list-{name}": f"/lists/{name}" for name in ("events", "deliveries", "queues")},
        "unsorted": "/lists/jobs?where=bogus%3E1",
        "problem": "/jobs/D-99999",
        "start": "/start",
        "form": FORM,
    }


async def test_every_page_fits_both_screens_and_is_accessible(
    browser: Browser, inbox: Inbox, make: Factory, people: People, rt: Runtime, weekly: None
) -> None:
    paths = await filled(make, people, rt)
    tab = await sign_in(browser, inbox, people, "erin")
    found = []
    for width in WIDTHS:
        for dark in (False, True):
            await tab.resize(width, dark=dark)
            for name, path in paths.items():
                await tab.go(path)
                await tab.picture(f"{name}-{width}{'-dark' if dark else ''}")
                where = f"{name} at {width} px{', dark' if dark else ''}"
                if await tab.page.evaluate(OVERFLOW):
                    found.append(f"{where}: wider than the screen")
                small = await tab.page.evaluate(SMALL_TARGETS)
                found += [f"{where}: {item}" for item in [*small, *await tab.problems()]]
    assert found == []
    complaints = [item for item in tab.page.complaints() if "404" not in item]
    assert complaints == []


async def test_no_list_is_wider_than_a_phone_whatever_its_names_are(
    browser: Browser, inbox: Inbox, make: Factory, people: People, rt: Runtime, weekly: None
) -> None:
    await filled(make, people, rt)
    await make.worker_row()
    tab = await sign_in(browser, inbox, people, "erin")
    found = []
    with_rows = 0
    for path in ("/jobs", *(f"/lists/{name}" for name in listed_entities())):
        await tab.resize(1440)
        await tab.go(path)
        found += [f"{path} breaks {cell}" for cell in await tab.page.evaluate(BROKEN_WORDS)]
        if await tab.page.evaluate(LONG_TITLES):
            found.append(f"{path}: a long address pushes columns off the screen")
        await tab.resize(390)
        with_rows += bool(await tab.page.evaluate(LONG_NAMES))
        if await tab.page.evaluate(OVERFLOW):
            found.append(f"{path} is wider than a phone")
            await tab.picture(f"wide{path.replace('/', '-')}")
    assert found == []
    assert with_rows > 5


async def test_the_bar_that_leads_to_a_form_is_shown_while_the_form_is_not(
    browser: Browser, inbox: Inbox, make: Factory, people: People
) -> None:
    ask = CHOICES.model_copy(update={"choices": (), "context": None, "text": "How many?"})
    short = await make.asked(ask, actor=people.anna)
    text = "\n".join(f"line {n}" for n in range(90))
    long = await make.asked(CHOICES.model_copy(update={"text": text}), actor=people.anna)
    tab = await sign_in(browser, inbox, people, "anna")
    await tab.resize(390)
    height = "document.querySelector('.jump').getBoundingClientRect().height > 0"

    async def becomes(shown: bool) -> None:
        async def look() -> bool:
            return bool(await tab.page.evaluate(height)) is shown

        await until(look, f"the bar is {'shown' if shown else 'hidden'}")

    await tab.go(f"/questions/{short.name}/1")
    await becomes(False)
    await tab.picture("short-answer", whole=False)
    await tab.go(f"/questions/{long.name}/1")
    await becomes(True)
    await tab.page.evaluate("document.querySelector('#decide').scrollIntoView()")
    await becomes(False)
    await tab.page.evaluate(SCROLL % 0)
    await becomes(True)
    await tab.page.tell("Emulation.setScriptExecutionDisabled", value=True)
    await tab.go(f"/questions/{short.name}/1")
    await becomes(True)


def changes(files: int, lines: int) -> bytes:
    """Return a patch of new files with so many lines each."""
    numbers = range(1, lines + 1)
    body = "".join(f"+    total_{nth} = sum(row.price for row in rows)\n" for nth in numbers)
    paths = [f"shop/part_{nth}.py" for nth in range(files)]
    header = "diff --git a/{0} b/{0}\nnew file mode 100644\n--- /dev/null\n+++ b/{0}\n"
    hunk = f"@@ -0,0 +1,{lines} @@\n{body}"
    return "".join(header.format(path) + hunk for path in paths).encode()


@pytest.mark.parametrize(("files", "lines"), [(12, 30), (60, 12), (1, 3000)])
async def test_a_decision_is_in_reach_wherever_its_reader_is(
    browser: Browser, inbox: Inbox, make: Factory, people: People, files: int, lines: int
) -> None:
    work = await make.reviewed(changes(files, lines), title="Round prices half up")
    tab = await sign_in(browser, inbox, people, "dave")
    found = []
    for width, height in WIDTHS.items():
        for dark in (False, True):
            await tab.resize(width, dark=dark)
            await tab.go(f"/questions/{work.name}/1")
            where = f"{files} files at {width} px"
            name = f"decision-{files}-{width}{'-dark' if dark else ''}"
            for part in (0, 0.5, 1):
                await tab.page.evaluate(SCROLL % part)
                hidden = await tab.page.evaluate(OUT_OF_REACH)
                found += [f"{where}, at {part}: {item}" for item in hidden]
                await tab.picture(f"{name}-at-{part}", whole=False)
            if await tab.page.evaluate(OVERFLOW):
                found.append(f"{where}: wider than the screen")
            found += [f"{where}: {item}" for item in await tab.page.evaluate(SMALL_TARGETS)]
            found += [f"{where}: {item}" for item in await tab.problems()]
            await tab.page.evaluate(SCROLL % 0)
            top = await tab.page.evaluate(TOP_OF_DIFF)
            if top > 2 * height:
                found.append(f"{where}: the changes begin at {top} px")
            await tab.page.evaluate("document.querySelector('.decision a').click()")
            if covered := await tab.page.evaluate(COVERED):
                found.append(f"{where}: the bar covers {covered}")
    assert found == []


@pytest.mark.parametrize(("inbox", "undone"), [(60, True), (2, False)], indirect=["inbox"])
@pytest.mark.parametrize("scripts", [True, False])
async def test_a_decision_is_undone_on_a_phone_or_counts(
    browser: Browser,
    inbox: Inbox,
    make: Factory,
    people: People,
    rt: Runtime,
    scripts: bool,
    undone: bool,
) -> None:
    work = await make.reviewed()
    tab = await sign_in(browser, inbox, people, "dave")
    await tab.resize(390)
    await tab.page.tell("Emulation.setScriptExecutionDisabled", value=not scripts)
    path = f"/questions/{work.name}/1"
    await tab.go(path)
    await tab.click("button[value=approve]")
    await tab.is_at(f"{path}?held")
    if undone:
        assert "Your approval counts in" in await tab.text()
        await tab.picture("undo", whole=False)
        await tab.click(".decision button")
        await tab.is_at(f"{path}/undo")
        assert "Undone: your answer does not count." in await tab.text()
        assert (await rt.questions.get(work.number, 1)).outcome == "open"
        return

    async def counts() -> bool:
        return "Your answer was recorded." in await tab.text()

    await until(counts, "the page of the decision that counts")
    assert (await rt.questions.get(work.number, 1)).outcome == "approved"


@pytest.mark.parametrize("scripts", [True, False])
async def test_a_comment_begins_at_the_number_of_a_line(
    browser: Browser, inbox: Inbox, make: Factory, people: People, rt: Runtime, scripts: bool
) -> None:
    work = await make.reviewed()
    tab = await sign_in(browser, inbox, people, "dave")
    await tab.resize(390)
    await tab.page.tell("Emulation.setScriptExecutionDisabled", value=not scripts)
    path = f"/questions/{work.name}/1"
    await tab.go(path)
    await tab.click("#reason")
    await tab.page.press("add a test")
    await tab.click("button[value='a.py:3']")
    field = ".comment textarea" if scripts else "#comments"  # in a box below the line

    async def begins() -> bool:
        return bool(await tab.page.evaluate(f"!!document.activeElement?.matches('{field}')"))

    await until(begins, "the field of the comment")
    assert await tab.page.evaluate("document.querySelector('#reason').value") == "add a test"
    await tab.click(field)  # without scripts, the cursor is at the beginning of the line
    await tab.page.press("why?")
    await tab.click("button[value=request-changes]")
    await tab.is_at(f"{path}?recorded")
    question = await rt.questions.get(work.number, 1)
    assert [str(comment) for comment in question.comments] == ["a.py:3: why?"]


async def test_a_line_that_changed_since_a_review_takes_its_comment_in_both_diffs(
    browser: Browser, inbox: Inbox, make: Factory, people: People, rt: Runtime
) -> None:
    work = await make.reviewed(PATCH.encode())
    await make.review(work.number, Decision.REQUEST_CHANGES, people.dave, reason="round down")
    again = await make.running(work.number)
    await rt.changes.store(again.lease, PATCH.replace("ROUND_HALF_UP", "ROUND_DOWN").encode())
    await rt.asking.ask(again.lease, REVIEW)
    tab = await sign_in(browser, inbox, people, "dave")
    path = f"/questions/{work.name}/2"
    await tab.go(path)
    await tab.click("#since-file-1 .add button[name=comment]")
    await tab.page.press("why?")
    boxes = "[...document.querySelectorAll('.comment')].map((box) => box.closest('details').id)+''"
    assert await tab.page.evaluate(boxes) == "since-file-1"
    place = await tab.page.evaluate("document.querySelector('#comments').value.split('=')[0]")
    await tab.click(f"#file-1 button[value='{place}']")
    assert await tab.page.evaluate(boxes) == "file-1"
    assert await tab.page.evaluate("document.activeElement.value") == "why?"
    await tab.click("button[value=request-changes]")
    await tab.is_at(f"{path}?recorded")
    comments = (await rt.questions.get(work.number, 2)).comments
    assert [str(comment) for comment in comments] == [f"{place}: why?"]


@pytest.mark.parametrize("scripts", [True, False])
async def test_the_problem_of_a_form_is_in_sight_beside_its_field(
    browser: Browser, inbox: Inbox, make: Factory, people: People, scripts: bool
) -> None:
    work = await make.reviewed(changes(12, 30))
    tab = await sign_in(browser, inbox, people, "dave")
    await tab.resize(390)
    await tab.page.tell("Emulation.setScriptExecutionDisabled", value=not scripts)
    await tab.go(f"/questions/{work.name}/1")
    await tab.click("button[value=request-changes]")

    async def is_in_sight() -> bool:
        return bool(await tab.page.evaluate(IN_SIGHT))

    await until(is_in_sight, "the problem, and the field that has the focus")
    assert "a request for changes needs a text or a comment" in await tab.text()


@pytest.mark.parametrize("scripts", [True, False])
async def test_a_question_is_answered_on_a_phone(
    browser: Browser, inbox: Inbox, make: Factory, people: People, rt: Runtime, scripts: bool
) -> None:
    work = await make.asked(CHOICES, actor=people.anna)
    gate = await make.asked(GATE)
    tab = await sign_in(browser, inbox, people, "ben")
    await tab.resize(390)
    await tab.page.tell("Emulation.setScriptExecutionDisabled", value=not scripts)
    await tab.go("/")
    await tab.click(".cover")
    path = f"/questions/{work.name}/1"
    await tab.is_at(path)
    await tab.click("button[value=even]")
    await tab.is_at(f"{path}?recorded")
    assert "Your answer was recorded." in await tab.text()
    assert (await rt.questions.get(work.number, 1)).resolution == {
        "outcome": "answered",
        "via": "person",
        "value": "even",
        "by": ["ben"],
    }
    carol = await sign_in(browser, inbox, people, "carol")
    await carol.page.tell("Emulation.setScriptExecutionDisabled", value=not scripts)
    path = f"/questions/{gate.name}/1"
    await carol.go(path)
    await carol.click("#reason")
    await carol.page.press("not now")
    await carol.click("button[value=deny]")
    await carol.is_at(f"{path}?recorded")
    job = await rt.read_model.job(gate.number)
    assert job.status is Status.FAILED
    await carol.click(".sign-out button")
    await carol.is_at("/sign-out")
    await carol.page.go(f"{carol.origin}{path}")
    await carol.is_at(f"/sign-in?next={quote(path, safe='')}")


async def test_the_inbox_can_be_installed(browser: Browser, inbox: Inbox, people: People) -> None:
    tab = await sign_in(browser, inbox, people, "ben")
    manifest = await tab.page.tell("Page.getAppManifest")
    assert manifest["url"].endswith("/static/manifest.webmanifest")
    assert manifest["errors"] == []
    found = await tab.page.tell("Page.getInstallabilityErrors")
    assert found["installabilityErrors"] == []


async def test_keys_go_through_the_questions_and_none_counts_while_something_is_typed(
    browser: Browser, inbox: Inbox, make: Factory, people: People
) -> None:
    first, _ = await make.asked(CHOICES), await make.asked()
    page = (await sign_in(browser, inbox, people, "ben")).page

    async def press(*keys: str) -> None:
        for key in keys:
            event = f"new KeyboardEvent('keydown', {{key: {key!r}, bubbles: true}})"
            await page.evaluate(f"document.activeElement.dispatchEvent({event}) && null")

    await press("j", "j", "k")
    assert await page.evaluate("document.activeElement.pathname") == f"/questions/{first.name}/1"
    await press("?")
    assert await page.evaluate("document.getElementById('keys').open")
    await press("?", "/", "?")
    assert await page.evaluate("document.activeElement.id") == "where"
    assert not await page.evaluate("document.getElementById('keys').open")
    await page.evaluate("document.activeElement.blur()")
    await press("g", "j")

    async def is_there() -> bool:
        return bool(await page.evaluate("location.pathname") == "/jobs")

    await until(is_there, "the page of the jobs")


async def test_the_log_is_live(
    browser: Browser, inbox: Inbox, make: Factory, people: People, rt: Runtime
) -> None:
    work = await make.running(actor=people.anna)
    await rt.checkpoints.log(work.lease, 1, "first\n")
    tab = await sign_in(browser, inbox, people, "anna")
    await tab.go(f"/jobs/{work.name}")
    assert "first" in await tab.text()
    await rt.checkpoints.log(work.lease, 2, "<b>second</b>\n")

    await tab.shows("<b>second</b>")
    await tab.shows("live")
    assert "Cancel job" in await tab.text()
    await rt.job_control.cancel(work.number, people.anna)
    await rt.settlement.release_run(work, "shutdown")
    await tab.shows(f"{work.name} canceled", "document.title")
    assert "Cancel job" not in await tab.text()
    assert "<b>second</b>" in await tab.text()
    assert tab.page.complaints() == []


async def test_an_open_page_shows_what_is_new(
    browser: Browser, inbox: Inbox, make: Factory, people: People, rt: Runtime
) -> None:
    work = await make.running(actor=people.anna)
    tab = await sign_in(browser, inbox, people, "anna")
    await tab.page.evaluate("document.querySelector('nav').dataset.same = 'yes'")
    other = await make.asked(CHOICES, actor=people.anna)
    await tab.shows(other.name)
    await tab.shows("(1) Questions", "document.querySelector('#news[role=status]').textContent")
    assert await tab.page.evaluate("document.querySelector('nav').dataset.same") is None
    await tab.go(f"/jobs/{work.name}")
    await rt.asking.ask(work.lease, CHOICES)
    await tab.shows(f"Answer {work.name}/1")
    await tab.shows(work.name, "document.querySelector('#news').textContent")
    assert tab.page.complaints() == []


async def test_a_row_keeps_the_focus_while_others_come_before_it(
    browser: Browser, inbox: Inbox, make: Factory, people: People
) -> None:
    number = await make.queued(title="Round prices half up")
    tab = await sign_in(browser, inbox, people, "erin")
    await tab.go("/jobs")
    await tab.page.evaluate(f"document.querySelector('#row-D-{number} .open').focus()")
    newer = await make.queued(title="Translate the e-mails")
    await tab.page.evaluate("document.dispatchEvent(new Event('refresh'))")

    async def has_both() -> bool:
        return bool(await tab.page.evaluate(f"document.querySelector('#row-D-{newer}') !== null"))

    await until(has_both, "the row of the newer job")
    focused = await tab.page.evaluate("document.activeElement.closest('tr').id")
    assert focused == f"row-D-{number}"


@pytest.mark.parametrize("scripts", [True, False])
async def test_times_are_in_the_zone_of_the_browser_or_name_that_of_the_server(
    browser: Browser, inbox: Inbox, make: Factory, people: People, scripts: bool
) -> None:
    number = await make.completed()
    tab = await sign_in(browser, inbox, people, "erin")
    await tab.page.tell("Emulation.setTimezoneOverride", timezoneId="Asia/Kathmandu")
    await tab.page.tell("Emulation.setScriptExecutionDisabled", value=not scripts)
    await tab.go(f"/jobs/D-{number}")
    times = "[...document.querySelectorAll('.event summary time')]"
    shown = await tab.page.evaluate(f"{times}.map((time) => time.textContent)")
    moments = await tab.page.evaluate(f"{times}.map((time) => time.dateTime)")
    zone = timezone(timedelta(hours=5, minutes=45))
    there = [datetime.fromisoformat(text).astimezone(zone) for text in moments]
    assert len(shown) > 2
    if scripts:
        pairs = zip(shown, there, strict=True)
        assert all(f"{moment:%H:%M}" in text for text, moment in pairs), (shown, there)
    else:
        assert all(text.endswith("UTC") for text in shown)


async def test_a_form_that_somebody_fills_stays(
    browser: Browser, inbox: Inbox, make: Factory, people: People, rt: Runtime
) -> None:
    work = await make.asked(CHOICES, actor=people.anna)
    tab = await sign_in(browser, inbox, people, "anna")
    await tab.go(f"/questions/{work.name}/1")
    await tab.click("#text")
    await tab.page.press("as in March")
    written = "document.querySelector('#text').value"
    other = await make.asked(CHOICES, actor=people.anna)
    await tab.shows("2", "document.querySelector('nav .count').innerText")
    assert await tab.page.evaluate(written) == "as in March"
    await make.answer(work.number, "up", people.ben)
    await tab.shows("This page has changed since you opened it", "news.innerText")
    assert await tab.page.evaluate(written) == "as in March"
    await tab.click("#news a")
    await tab.shows(f"{work.name}/1 answered", "document.title")
    assert other.name in await tab.text()


@pytest.mark.parametrize("path", ["/", "/jobs", "/lists/queues", "question"])
async def test_a_page_says_that_it_lost_the_server_until_it_is_back(
    browser: Browser, inbox: Inbox, make: Factory, people: People, path: str
) -> None:
    work = await make.asked(CHOICES, actor=people.anna)
    tab = await sign_in(browser, inbox, people, "anna")
    await tab.resize(390)
    await tab.go(f"/questions/{work.name}/1" if path == "question" else path)
    said = "document.querySelector('#connection').innerText"
    assert await tab.page.evaluate(said) == ""
    await tab.online(is_online=False)
    await tab.shows("Not connected since", said)
    await tab.picture("not-connected", whole=False)
    await tab.online(is_online=True)
    await tab.is_empty(said)


async def test_a_form_that_cannot_be_sent_keeps_what_was_entered(
    browser: Browser, inbox: Inbox, make: Factory, people: People, rt: Runtime
) -> None:
    work = await make.asked(CHOICES, actor=people.anna)
    tab = await sign_in(browser, inbox, people, "anna")
    path = f"/questions/{work.name}/1"
    await tab.go(path)
    await tab.click("#text")
    await tab.page.press("as in March")
    await tab.online(is_online=False)
    await tab.click("#send")
    await tab.shows("Nothing was sent", "document.querySelector('#connection').innerText")
    assert await tab.page.evaluate("document.querySelector('#text').value") == "as in March"
    await tab.online(is_online=True)
    await tab.click("#send")
    await tab.is_at(f"{path}?recorded")
    answered = await rt.questions.get(work.number, 1)
    assert answered.answer_text() == "as in March"
