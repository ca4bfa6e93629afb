"""Whatever a person writes: it is refused, or it means one thing and is safe to hand to git."""

import re
import subprocess

from hypothesis import example, given
from hypothesis import strategies as st

from pequod.sources.errors import BadReferenceError
from pequod.sources.git.address import GitReference, parse
from pequod.sources.git.names import ref_problem
from pequod.sources.git.remote import remote_of

NASTY = st.text(alphabet="ab.-/@{}:~^*?[\\ %\0\n\u200c\u2028lock", max_size=12)
URLS = st.one_of(
    st.text(max_size=40),
    st.from_regex(r"(https|ssh|git\+https|ext|file)://[a-z0-9.:@\[\]-]{0,20}/[a-z./%0-9-]{0,20}"),
    st.from_regex(r"[a-z-]{0,4}@[a-z0-9.-]{0,10}:[a-z/.-]{0,10}"),
)


@given(URLS)
@example("git@h:a")
def test_an_address_is_refused_or_leads_to_an_allowed_transport(url: str) -> None:
    try:
        reference = parse(url)
    except BadReferenceError:
        return
    assert re.fullmatch(r"(https://|ssh://|[\w.-]+@[\w.-]+:)[^\s:]?\S*", reference.url)
    assert not reference.url.startswith("-")
    assert "::" not in reference.url or reference.remote.host.count(":") > 1
    assert not reference.remote.host.startswith("-")
    assert not reference.remote.user.startswith("-")


@given(URLS)
def test_an_address_has_one_spelling(url: str) -> None:
    remote = remote_of(url, allow_http=True)
    if not isinstance(remote, str):
        assert remote_of(remote.url, allow_http=True) == remote


@given(NASTY)
def test_a_path_never_climbs(path: str) -> None:
    try:
        reference = GitReference(url="https://git.test/a", path=path)
    except BadReferenceError:
        return
    parts = reference.path.split("/") if reference.path else []
    assert not {"", ".", ".."} & set(parts)
    assert not reference.path.startswith(("/", "-"))


@given(st.lists(NASTY.filter(lambda ref: "\0" not in ref), min_size=20, max_size=20))
def test_a_ref_that_is_accepted_is_one_for_git_as_well(refs: list[str]) -> None:
    for ref in refs:
        if ref and ref_problem(ref) is None:
            command = ["git", "check-ref-format", "--allow-onelevel", ref]
            assert subprocess.run(command, check=False).returncode == 0
