"""What to do about a sandbox mode that does not work, by the error of its probe."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from draftsman.sandbox import confinement, landlock

NOT_INSTALLED: Final = "it is not installed"
NOT_ROOT: Final = "the worker has to run as root"
NO_IMAGE: Final = "no image is configured"
PROBE_TIMEOUT: Final = 20.0
"""Seconds for a probe; long, since a machine under load is slow, not unsafe."""
PROBE_TOO_SLOW: Final = (
    f"the probe took more than {PROBE_TIMEOUT:g} s; the machine may be overloaded"
)
TURN_OFF: Final = 'turn the sandbox off: set [sandbox] mode = "off"'
_ALLOW_NAMESPACES: Final = (
    "allow user namespaces: sysctl -w kernel.apparmor_restrict_unprivileged_userns=0 (Ubuntu 24.04)"
    " or kernel.unprivileged_userns_clone=1 (Debian) or user.max_user_namespaces=15000; Docker:"
    " --security-opt seccomp=unconfined --security-opt systempaths=unconfined; Kubernetes:"
    " securityContext: {seccompProfile: {type: Unconfined}, procMount: Unmasked}"
)
_USE_KERNEL: Final = "use a kernel with Landlock ABI 6 (Linux 6.12)"
_USE_IMAGE: Final = "set [sandbox] image to an image that it has on this machine"
_USE_USER: Final = "run the worker as an ordinary user, or give root"
_REMEDIES: Final[tuple[tuple[str, str], ...]] = (
    (re.escape(PROBE_TOO_SLOW), "try again when the load is lower"),
    (f"^bwrap: {NOT_INSTALLED}", "install bubblewrap, for example by: apt install bubblewrap"),
    (r"^bwrap: .*[Uu]nknown option", "install bubblewrap 0.8 or later"),
    (f"^landlock: {landlock.DISABLED}", "add landlock to the parameter lsm= of the kernel"),
    (f"^landlock: {landlock.BLOCKED}", "let the container allow the system calls of Landlock"),
    (f"^landlock: {landlock.MISSING}", _USE_KERNEL),
    (f"^container: {NO_IMAGE}", _USE_IMAGE),
    ("^container: ", f"install the engine, and {_USE_IMAGE}; no run pulls an image"),
    (
        f"^user: .*(?:{NOT_ROOT}|{confinement.NO_NAMESPACES})",
        "run the worker as root, with CAP_SYS_ADMIN",
    ),
    (confinement.NO_MOUNTS, f"{_USE_USER} CAP_SYS_ADMIN"),
    (
        confinement.NO_CHANGE_OF_USER,
        f"{_USE_USER} CAP_SETUID, CAP_SETGID and a user namespace that has this id",
    ),
    (
        "execvp|Can't (?:find source|bind|mkdir)|cannot (?:enter|be started)|denied: '",
        "make this path readable for the user of the worker and, if that is root, for every user",
    ),
    (
        r"^bwrap: .*(?:namespace|[ug]id map|proc|loopback|pivot|mount|permi)",
        _ALLOW_NAMESPACES,
    ),
)
"""Patterns of a mode with its problem, and the remedy of the first that fits."""


class FailedMode(NamedTuple):
    """A mode that does not work here, and why."""

    mode: str
    problem: str

    def __str__(self) -> str:
        return f"{self.mode}: {self.problem}"

    @property
    def remedy(self) -> str:
        """What makes it work, or where to look for it."""
        found = (remedy for pattern, remedy in _REMEDIES if re.search(pattern, str(self)))
        return next(found, "see: draftsman help --page sandbox")
