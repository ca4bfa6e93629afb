"""The environment that git runs in: made from nothing, so that nobody else has a say.

Settings travel in the environment (`GIT_CONFIG_COUNT`) and not on the command line, which every
process of the machine can read. They override whatever a repository's own configuration says.
"""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

Setting = tuple[str, str]

_TOLERATED = (
    "badTimezone",
    "missingEmail",
    "missingNameBeforeEmail",
    "missingSpaceBeforeDate",
    "missingSpaceBeforeEmail",
    "missingTaggerEntry",
    "multipleAuthors",
    "zeroPaddedDate",
    "zeroPaddedFilemode",
)
"""Blemishes that honest old repositories have, and that harm nobody."""

_ALWAYS: tuple[Setting, ...] = (
    ("core.hooksPath", "/dev/null"),
    ("core.fsmonitor", "false"),
    ("core.attributesFile", "/dev/null"),
    ("core.bigFileThreshold", "16m"),
    ("credential.helper", ""),
    ("safe.bareRepository", "explicit"),
    ("submodule.recurse", "false"),
    ("protocol.version", "2"),
    ("protocol.allow", "never"),
    ("http.sslVerify", "true"),
    ("http.followRedirects", "false"),
    ("http.proxy", ""),
    # For a helper that has survived everybody who could end it.
    ("http.lowSpeedLimit", "1"),
    ("http.lowSpeedTime", "30"),
    ("transfer.bundleURI", "false"),
    ("fetch.recurseSubmodules", "false"),
    ("fetch.writeCommitGraph", "false"),
    ("fetch.unpackLimit", "1"),
    ("fetch.fsckObjects", "true"),
    *((f"fetch.fsck.{name}", "ignore") for name in _TOLERATED),
    ("pack.threads", "1"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
)


def environment(
    *,
    home: Path,
    repository: Path | None = None,
    protocols: Iterable[str] = (),
    settings: Iterable[Setting] = (),
    variables: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Everything that a git process knows; `home` is a folder with nothing in it."""
    allowed = tuple(protocols)
    always = (*_ALWAYS, *((f"protocol.{name}.allow", "always") for name in allowed))
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home),
        "LC_ALL": "C",
        "TZ": "UTC",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "/bin/false",
        "SSH_ASKPASS": "/bin/false",
        "GIT_ALLOW_PROTOCOL": ":".join(allowed),
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_LITERAL_PATHSPECS": "1",
        # A ref could otherwise show another object in place of the one that was asked for.
        "GIT_NO_REPLACE_OBJECTS": "1",
        # A repository that lacks something would otherwise fetch it, from where it likes.
        **({} if allowed else {"GIT_NO_LAZY_FETCH": "1"}),
        **({"GIT_DIR": str(repository)} if repository is not None else {}),
        **_numbered((*always, *settings)),
        **(variables or {}),
    }


def _numbered(settings: tuple[Setting, ...]) -> dict[str, str]:
    numbered = {"GIT_CONFIG_COUNT": str(len(settings))}
    for number, (key, value) in enumerate(settings):
        numbered[f"GIT_CONFIG_KEY_{number}"] = key
        numbered[f"GIT_CONFIG_VALUE_{number}"] = value
    return numbered
