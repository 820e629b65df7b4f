"""Downloads of the files that people attach to requests, by the bot of their channel."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from draftsman.channels import ChannelName
from draftsman.errors import DraftsmanError, Failure
from draftsman.jobs.requests.attachments import PendingFile
from draftsman.jobs.requests.service.attachments import Attachments
from draftsman.processes.lifecycle import StopSignal

if TYPE_CHECKING:
    from draftsman.jobs.requests.invocation import FileRef

POLL: Final = 15.0
"""Seconds between looks for files that another process left; `wake` does not wait for them."""
TIMEOUT: Final = 45.0
"""Seconds for all attempts of a download; below the claim of the service."""
DELAYS: Final = (1.0, 4.0, 10.0, math.inf)
"""Seconds before the next attempt after a failure; the last failure is final."""
_log = logging.getLogger(__name__)


class WithFiles(NamedTuple):
    """A downloaded thread, and the files of its messages, which are attached to the job too."""

    content: bytes
    files: Sequence[FileRef]


class FileRefused(Exception):
    """A file cannot be downloaded; the text is the reason, without secrets."""


class AttachmentDownloads:
    """Downloads pending files of a channel until it is stopped.

    `download` returns the bytes of a file, with a limit of its own on their number. It raises
    FileRefused for a file that another attempt would not get either, and Failure otherwise.
    """

    def __init__(
        self,
        attachments: Attachments,
        channel: ChannelName,
        download: Callable[[PendingFile], Awaitable[bytes | WithFiles]],
        delays: tuple[float, ...] = DELAYS,
    ) -> None:
        self._attachments = attachments
        self._channel = channel
        self._download = download
        self._delays = delays
        self.stop = StopSignal(self.wake)
        self._woken = asyncio.Event()

    async def run(self) -> None:
        """Download until stopped; a download under way is finished."""
        while not self.stop:
            self._woken.clear()
            try:
                while files := await self._attachments.claim(self._channel):
                    await asyncio.gather(*map(self._store, files))
            except DraftsmanError as error:  # the claims end, and the files are claimed again
                _log.warning("attachments: %s", error)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(POLL):
                    await self._woken.wait()

    def wake(self) -> None:
        """Look for new files at once."""
        self._woken.set()

    async def _store(self, file: PendingFile) -> None:
        try:
            async with asyncio.timeout(TIMEOUT):
                downloaded = await self._downloaded(file)
        except FileRefused as error:
            _log.warning("attachment %s: %s", file.id, error)
            await self._attachments.refuse(file, str(error))
        except TimeoutError:
            await self._attachments.refuse(file, f"its download took more than {TIMEOUT:.0f} s")
        except DraftsmanError:
            raise
        except Exception as error:  # must not end the bot
            _log.error("attachment %s failed: %s", file.id, type(error).__name__, exc_info=error)
            await self._attachments.refuse(file, "an internal error; see the log of the bots")
        else:
            if isinstance(downloaded, WithFiles):
                await self._attachments.store(file, downloaded.content, downloaded.files)
            else:
                await self._attachments.store(file, downloaded, ())

    async def _downloaded(self, file: PendingFile) -> bytes | WithFiles:
        for delay in self._delays:
            try:
                return await self._download(file)
            except Failure as error:
                if math.isinf(delay):
                    raise FileRefused(f"it could not be downloaded: {error}") from None
            await asyncio.sleep(delay)
        raise FileRefused("it could not be downloaded")
