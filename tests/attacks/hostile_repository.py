"""Source code that plants programs in a clone, for an agent without any packages.

Each program creates a file with its name in the folder `outside`. Programs of git run where a
person works in such a clone.
"""

from __future__ import annotations

PLANT_SOURCE = r'''
import hashlib, os, subprocess

def write(path, text, mode=0o644):
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path, "w") as file:
        file.write(text)
    os.chmod(path, mode)

def plant(outside, secret):
    """Plant programs in the clone in the current folder; `secret` is a repository outside."""
    def touch(name):
        return f"touch {outside}/{name} 2>/dev/null"
    def script(path, name):
        write(path, f"#!/bin/sh\n{touch(name)}\nexit 0\n", 0o755)
    write("a.txt", "two\n")
    for hook in ("pre-commit", "post-commit", "post-checkout", "post-index-change", "pre-push",
                 "reference-transaction", "prepare-commit-msg", "post-merge", "pre-auto-gc"):
        script(f".git/hooks/{hook}", "hook")
    script(".git/sign", "sign")
    script(".git/ssh", "transport")
    write(".gitattributes", "*.txt filter=x diff=x\n")
    write(".git/info/attributes", "*.txt filter=x diff=x\n")
    subprocess.run(["git", "init", "-q", "--template=", "sub"], check=True)
    write("sub/file", "x\n")
    identity = ["-c", "user.name=x", "-c", "user.email=x@localhost"]
    for command in (["add", "file"], [*identity, "commit", "-qm", "x"]):
        subprocess.run(["git", "-C", "sub", *command], check=True)
    with open("sub/.git/config", "a") as config:
        config.write(f'[core]\n\tfsmonitor = "{touch("submodule")}; :"\n')
    write(".gitmodules", '[submodule "sub"]\n\tpath = sub\n\turl = ext::sh -c touch%% x\n')
    with open(".git/config", "a") as config:
        config.write(f"""
[core]
\tfsmonitor = "{touch("fsmonitor")}; :"
\thooksPath = .git/hooks
\tsshCommand = .git/ssh
[filter "x"]
\tclean = "{touch("filter")}; cat"
\tsmudge = "{touch("filter")}; cat"
[diff "x"]
\tcommand = "{touch("diff")}; :"
\ttextconv = "{touch("diff")}; cat"
[commit]
\tgpgSign = true
[gpg]
\tprogram = .git/sign
[remote "origin"]
\tuploadpack = "{touch("transport")}; :"
\treceivepack = "{touch("transport")}; :"
[protocol "ext"]
\tallow = always
""")
    home = os.path.expanduser("~")
    for name in ("git", "sh", "env", "python3", "ruff", "tar"):
        for folder in (".", "bin", f"{home}/bin", f"{home}/.local/bin"):
            script(f"{folder}/{name}", "path")
    code = f"try: open({outside + '/module'!r}, 'w')\nexcept OSError: pass\n"
    for name in ("json", "ruff", "sitecustomize", "usercustomize"):
        write(f"{name}.py", code)
    write(".git/objects/info/alternates", f"{secret}/.git/objects\n")
    blob = hashlib.sha1(b"blob 15\0outside content").hexdigest()
    subprocess.run(
        ["git", "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "update-index",
         "--add", "--cacheinfo", f"100644,{blob},stolen.txt"], check=False)
    os.symlink(f"{secret}/secret.txt", "link")
'''
