"""Names that are given to us, or found in trees: of revisions, of folders, of files."""

import re
import unicodedata

_REF = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//")
_SHORT_GIT = re.compile(r"git~[0-9]+")


def ref_problem(ref: str) -> str | None:
    """What `git check-ref-format --allow-onelevel` would say, and that options are no refs."""
    if ref.startswith("-"):
        return "it begins with a dash"
    if _REF.search(ref) or not ref.isprintable() or " " in ref:
        return "it has characters that no ref may have"
    if ref == "@" or ref.endswith((".", "/")) or ref.startswith("/"):
        return "it is no name of a ref"
    if any(part.startswith(".") or part.endswith(".lock") for part in ref.split("/")):
        return "a part of it begins with a dot or ends with .lock"
    return None


def tree_path_problem(path: str) -> str | None:
    """What is wrong with a folder that somebody wants from a repository."""
    if path.startswith(("/", "-")) or "\\" in path:
        return "it is absolute, begins with a dash or has a backslash"
    for part in path.split("/"):
        if part in {"", ".", ".."}:
            return "it has empty, . or .. parts"
        if part.endswith((".", " ")):
            return "a part of it ends with a dot or a space"
        if is_git_folder(part):
            return "a part of it is the folder that git keeps for itself"
    return None


def is_git_folder(name: str) -> bool:
    """Whether some file system takes a name for `.git`: by case, short name or ignored characters.

    A tree may be copied to one of those, and git there would believe its configuration.
    """
    visible = "".join(one for one in name if unicodedata.category(one) != "Cf")
    folded = visible.casefold().partition(":")[0].rstrip(". ")
    return folded == ".git" or _SHORT_GIT.fullmatch(folded) is not None
