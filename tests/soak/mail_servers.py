"""Debian's Postfix, Dovecot and OpenDKIM, with their data in a folder of the test; needs root.

A person's mail enters at `submission`, is signed for example.org, arrives at the port of the
receiving server, which verifies it and writes `Authentication-Results`, and ends in a Maildir. Keys
are in a file, so that nothing asks the DNS.
"""

from __future__ import annotations

import base64
import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

PROGRAMS: Final = ("postfix", "dovecot", "opendkim")
SERVER: Final = "mx.example.org"
PASSWORD: Final = "p4ssw0rd-of-all-mailboxes"
POSTFIX: Final = """
compatibility_level = 3.6
queue_directory = {folder}/queue
data_directory = {folder}/data
mail_owner = postfix
setgid_group = postdrop
myhostname = {server}
mydestination =
local_recipient_maps =
inet_interfaces = 127.0.0.1
inet_protocols = ipv4
smtputf8_enable = no
recipient_delimiter = +
virtual_mailbox_domains = example.org
virtual_mailbox_maps = static:all
virtual_transport = lmtp:inet:127.0.0.1:{lmtp}
relayhost = [127.0.0.1]:{smtp}
disable_dns_lookups = yes
smtp_dns_support_level = disabled
mynetworks = 127.0.0.0/8
message_size_limit = 20000000
milter_default_action = tempfail
maillog_file = /dev/stdout
maillog_file_prefixes = /dev
"""
MASTER: Final = """
127.0.0.1:{smtp} inet n - n - - smtpd -o smtpd_milters=inet:127.0.0.1:{verify}
127.0.0.1:{submission} inet n - n - - smtpd -o smtpd_milters=inet:127.0.0.1:{sign}
  -o content_filter=smtp:[127.0.0.1]:{smtp}
proxymap unix - - n - - proxymap
cleanup unix n - n - 0 cleanup
qmgr unix n - n 300 1 qmgr
rewrite unix - - n - - trivial-rewrite
bounce unix - - n - 0 bounce
defer unix - - n - 0 bounce
trace unix - - n - 0 bounce
smtp unix - - n - - smtp
lmtp unix - - n - - lmtp
anvil unix - - n - 1 anvil
error unix - - n - - error
retry unix - - n - - error
postlog unix-dgram n - n - 1 postlogd
"""
DOVECOT: Final = """
base_dir = {folder}/dovecot
state_dir = {folder}/dovecot-state
protocols = imap lmtp
listen = 127.0.0.1
ssl = no
disable_plaintext_auth = no
log_path = {folder}/dovecot.log
recipient_delimiter = +
mail_location = maildir:{folder}/mail/%n
first_valid_uid = 1
default_internal_user = dovecot
default_login_user = dovenull
passdb {{
  driver = static
  args = password={password}
}}
userdb {{
  driver = static
  args = uid=mail gid=mail home={folder}/mail/%n allow_all_users=yes
}}
service imap-login {{
  chroot =
  inet_listener imap {{
    port = {imap}
  }}
  inet_listener imaps {{
    port = 0
  }}
}}
service anvil {{
  chroot =
}}
service lmtp {{
  inet_listener lmtp {{
    address = 127.0.0.1
    port = {lmtp}
  }}
}}
"""
SIGN: Final = """
Mode s
Socket inet:{sign}@127.0.0.1
Domain example.org
Selector test
KeyFile {folder}/key.pem
InternalHosts 127.0.0.1
RequireSafeKeys no
Background no
"""
VERIFY: Final = """
Mode v
Socket inet:{verify}@127.0.0.1
AuthservID {server}
TestPublicKeys {folder}/keys.txt
AlwaysAddARHeader yes
InternalHosts 192.0.2.1
Background no
"""


@dataclass(frozen=True)
class MailServers:
    """The ports of the servers."""

    folder: Path
    smtp: int
    submission: int
    imap: int
    lmtp: int
    sign: int
    verify: int


def missing() -> str:
    """Return why the servers cannot run here; "" if they can."""
    path = f"{os.environ.get('PATH', '')}:/usr/sbin"
    absent = [name for name in PROGRAMS if shutil.which(name, path=path) is None]
    if absent:
        return f"no {', '.join(absent)} on this machine"
    return "" if os.geteuid() == 0 else "Postfix needs root"


@contextlib.contextmanager
def mail_servers() -> Iterator[MailServers]:
    """Run the servers until the end of the context."""
    with tempfile.TemporaryDirectory(prefix="mail-") as folder:  # names of sockets must be short
        Path(folder).chmod(0o755)
        with _running(Path(folder)) as servers:
            yield servers


@contextlib.contextmanager
def _running(folder: Path) -> Iterator[MailServers]:
    servers = MailServers(folder, *_free_ports(6))
    fields = {**vars(servers), "server": SERVER, "password": PASSWORD}
    for name in ("queue", "data", "dovecot", "dovecot-state", "mail", "postfix"):
        (folder / name).mkdir()
    shutil.chown(folder / "data", "postfix")
    shutil.chown(folder / "mail", "mail", "mail")
    _write_keys(folder)
    files = {
        "postfix/main.cf": POSTFIX,
        "postfix/master.cf": MASTER,
        "dovecot.conf": DOVECOT,
        "sign.conf": SIGN,
        "verify.conf": VERIFY,
    }
    for name, text in files.items():
        (folder / name).write_text(text.format(**fields))
    commands = [
        ["opendkim", "-x", str(folder / "sign.conf"), "-f"],
        ["opendkim", "-x", str(folder / "verify.conf"), "-f"],
        ["dovecot", "-F", "-c", str(folder / "dovecot.conf")],
        ["postfix", "-c", str(folder / "postfix"), "start-fg"],
    ]
    env = {**os.environ, "PATH": f"{os.environ.get('PATH', '')}:/usr/sbin"}
    with contextlib.ExitStack() as stack:
        for command in commands:
            log = stack.enter_context((folder / f"{command[0]}.out").open("ab"))
            process = subprocess.Popen(command, env=env, stdout=log, stderr=log)
            stack.callback(_end, process)
            if command[0] == "postfix":
                stop = ["postfix", "-c", str(folder / "postfix"), "stop"]
                stack.callback(subprocess.run, stop, env=env, check=False, capture_output=True)
        for port in (servers.smtp, servers.submission, servers.imap, servers.lmtp):
            _wait_for(port, folder)
        yield servers


def _write_keys(folder: Path) -> None:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )
    public = key.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    (folder / "key.pem").write_bytes(private)
    record = f"v=DKIM1; k=rsa; p={base64.b64encode(public).decode()}"
    (folder / "keys.txt").write_text(f"test._domainkey.example.org {record}\n")


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for item in sockets:
            item.bind(("127.0.0.1", 0))
        return [item.getsockname()[1] for item in sockets]


def _wait_for(port: int, folder: Path) -> None:
    end = time.monotonic() + 30
    while time.monotonic() < end:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.1)
    logs = "\n".join(
        path.read_text()[-2000:] for path in [*folder.glob("*.out"), *folder.glob("*.log")]
    )
    raise AssertionError(f"nothing listens on port {port}:\n{logs}")


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
