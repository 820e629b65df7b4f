"""Whether this machine can sign commits: one is signed and verified."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from draftsman.agent_runs.clones.commits import CommitIdentity
from draftsman.agent_runs.clones.git import (
    config_variables,
    git,
    git_environment,
    git_failure,
    init,
)

VALID = ("G", "U")
"""Results of `%G?` for a valid signature; `U` of a GnuPG key whose owner is not certified."""


async def check_signing(identity: CommitIdentity) -> None:
    """Sign a commit and verify it; raises Failure `signing`."""
    with tempfile.TemporaryDirectory() as folder:
        repo = Path(folder, "repo")
        await init(repo, "--bare")
        tree = (await git("hash-object", "-t", "tree", "-w", "--stdin", cwd=repo)).decode().strip()
        commit = await identity.commit(repo, tree, (), "check", "@0 +0000", signed=True)
        env = identity.key_variables()
        if (key := identity.signing_key) is not None and not await asyncio.to_thread(key.is_dir):
            signers = Path(folder, "signers")
            signers.write_text(f"* {await _public_key(key)}\n", encoding="utf-8")
            env = config_variables({"gpg.ssh.allowedSignersFile": str(signers)})
        output = await git("show", "--no-patch", "--format=%G?", commit, cwd=repo, env=env)
        if (result := output.decode().strip()) not in VALID:
            raise git_failure(
                f"the signature of a commit is not valid (%G? is {result})", "signing"
            )


async def _public_key(path: Path) -> str:
    """Return the public key of a private key, or of its file."""
    text = await asyncio.to_thread(path.read_text, encoding="utf-8")
    if not text.startswith("-----BEGIN"):
        return text.strip()
    process = await asyncio.create_subprocess_exec(
        *("ssh-keygen", "-y", "-f", str(path)),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env=git_environment(),
    )
    output, _ = await process.communicate()
    return output.decode().strip()
