"""How what belongs to a source is called."""

import hashlib

LONGEST = 63
_DIGITS = 10


def graph_name(kind: str, name: str, cluster: str | None = None) -> str:
    """The name of the graph of a source; long ones end with a digest instead."""
    whole = "-".join(part for part in (kind.lower(), name, cluster) if part)
    return shortened(whole)


def shortened(name: str, longest: int = LONGEST) -> str:
    """A name that is not too long, and as different from others as it was."""
    if len(name) <= longest:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:_DIGITS]
    return f"{name[: longest - _DIGITS - 1].rstrip('-.')}-{digest}"
