"""Files of an agent's home that a checkpoint stores, as an archive.

An agent keeps the state of its session in its home, which is removed after each run.
"""

from __future__ import annotations

import io
import os
import secrets
import stat
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Final

from draftsman.errors import Failure

MAX_BYTES: Final = 25 * 1024 * 1024
"""Maximum bytes of the files of a checkpoint."""
MAX_FILES: Final = 2000
"""Maximum number of files and folders of a checkpoint."""
FLAGS: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def pack(home: Path, paths: Sequence[str]) -> bytes:
    """Return the files and folders at these paths below `home`.

    Paths that do not exist, links and special files are left out. The same files give the same
    bytes. Raises Failure `home_files` for a path outside of `home`, too many files or too much
    data.
    """
    archive = _Archive()
    root = os.open(home, FLAGS | os.O_DIRECTORY)
    try:
        for path in sorted(set(paths)):
            archive.add_path(root, path)
    finally:
        os.close(root)
    return archive.close()


def unpack(archive: bytes, home: Path) -> None:
    """Write the files and folders of an archive into a home, and nothing outside of it.

    They replace links and files that commands left there. Raises Failure `home_files`.
    """
    root = os.open(home, FLAGS | os.O_DIRECTORY)
    try:
        with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
            for entry in tar:
                name = PurePosixPath(entry.name)
                content = tar.extractfile(entry) if entry.isfile() else None
                if name.is_absolute() or ".." in name.parts or not (content or entry.isdir()):
                    raise _failure(f"{entry.name[:200]!r} is not a file or folder below $HOME")
                folder = _open_folder(root, name.parts[:-1] if content else name.parts)
                try:
                    if content is not None:
                        _write(folder, name.name, content.read(), entry.mode & 0o700)
                finally:
                    os.close(folder)
    except OSError as error:
        raise _failure(f"the files of $HOME cannot be written: {error.strerror}") from None
    finally:
        os.close(root)


def write(home: Path, folder: str, files: Mapping[str, bytes], uid: int | None = None) -> None:
    """Write read-only files into a folder of a home; existing files of these names are replaced.

    A link that an agent left there is not followed, and a folder is renamed. With `uid`,
    they belong to that user. Raises Failure `home_files`.
    """
    root = os.open(home, FLAGS | os.O_DIRECTORY)
    try:
        target = _open_folder(root, (folder,))
        try:
            if uid is not None:
                os.fchown(target, uid, uid)
            for name, data in files.items():
                _write(target, name, data, 0o400, uid)
        finally:
            os.close(target)
    except OSError as error:
        raise _failure(f"the files of $HOME cannot be written: {error.strerror}") from None
    finally:
        os.close(root)


def _open_folder(root: int, names: Sequence[str]) -> int:
    """Open a folder below an open folder; make it where it is missing, or is no folder."""
    descriptor = os.dup(root)
    for name in names:
        try:
            child = _child(descriptor, name)
        finally:
            os.close(descriptor)
        descriptor = child
    return descriptor


def _child(folder: int, name: str) -> int:
    flags = FLAGS | os.O_DIRECTORY
    try:
        return os.open(name, flags, dir_fd=folder)
    except FileNotFoundError:
        pass
    except OSError:  # a link, a file, or a folder that cannot be read
        _clear(folder, name)
    os.mkdir(name, 0o700, dir_fd=folder)
    return os.open(name, flags, dir_fd=folder)


def _write(folder: int, name: str, data: bytes, mode: int, uid: int | None = None) -> None:
    """Write a new file. Its owner is changed while it is open: its name may be another file."""
    _clear(folder, name)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(name, flags, mode, dir_fd=folder), "wb") as file:
        os.fchmod(file.fileno(), mode)
        file.write(data)
        if uid is not None:
            os.fchown(file.fileno(), uid, uid)


def _clear(folder: int, name: str) -> None:
    """Remove a file or link of this name. A folder is renamed: it may be deep, or in use."""
    try:
        os.unlink(name, dir_fd=folder)
    except FileNotFoundError:
        pass
    except (IsADirectoryError, PermissionError):
        os.rename(name, f"replaced-{secrets.token_hex(6)}", src_dir_fd=folder, dst_dir_fd=folder)


class _Archive:
    def __init__(self) -> None:
        self._buffer = io.BytesIO()
        self._tar = tarfile.open(fileobj=self._buffer, mode="w", format=tarfile.PAX_FORMAT)  # noqa: SIM115
        self._bytes = 0
        self._files = 0

    def add_path(self, root: int, path: str) -> None:
        names = PurePosixPath(path).parts
        if not names or ".." in names or path.startswith("/"):
            raise _failure(f"{path[:200]!r} is not a path below $HOME")
        descriptor = os.dup(root)
        try:
            for name in names:
                child = os.open(name, FLAGS, dir_fd=descriptor)
                os.close(descriptor)
                descriptor = child
            self._add(descriptor, "/".join(names))
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:  # a link among the parts
            raise _failure(f"{path[:200]!r}: {error.strerror}") from None
        finally:
            os.close(descriptor)

    def _add(self, descriptor: int, name: str) -> None:
        """Add an open file, or an open folder with its files."""
        status = os.fstat(descriptor)
        entry = tarfile.TarInfo(name)
        self._files += 1
        if self._files > MAX_FILES:
            raise _failure(f"a checkpoint has at most {MAX_FILES:,} files of $HOME")
        if stat.S_ISDIR(status.st_mode):
            entry.type = tarfile.DIRTYPE
            entry.mode = 0o700
            self._tar.addfile(entry)
            for child_name in sorted(os.listdir(descriptor)):
                self._add_child(descriptor, child_name, f"{name}/{child_name}")
        elif stat.S_ISREG(status.st_mode):
            self._bytes += status.st_size
            if self._bytes > MAX_BYTES:
                raise _failure(f"a checkpoint has at most {MAX_BYTES:,} bytes of $HOME")
            entry.size = status.st_size
            entry.mode = 0o700 if status.st_mode & 0o100 else 0o600
            with open(descriptor, "rb", closefd=False) as file:
                self._tar.addfile(entry, file)

    def _add_child(self, folder: int, child_name: str, name: str) -> None:
        try:
            child = os.open(child_name, FLAGS, dir_fd=folder)
        except OSError:  # a link, or a socket
            return
        try:
            self._add(child, name)
        finally:
            os.close(child)

    def close(self) -> bytes:
        self._tar.close()
        return self._buffer.getvalue()


def _failure(problem: str) -> Failure:
    return Failure(problem, origin="agent", code="home_files")
