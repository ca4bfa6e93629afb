"""What a person may write, and what never gets as far as a process."""

import asyncio
from pathlib import Path
from typing import NoReturn

import pytest

from pequod.sources.errors import BadReferenceError
from pequod.sources.git.address import GitReference, parse

GOOD = "https://git.test/team/app.git"

INJECTIONS = [
    "--upload-pack=touch {canary}",
    "--upload-pack={canary}",
    "-u{canary}",
    "-c core.sshCommand=touch\u00a0{canary}",
    "-ccore.sshCommand={canary}",
    "--config=core.fsmonitor=touch {canary}",
    "--output={canary}",
    "-o{canary}",
    "-oProxyCommand=touch {canary}",
    "--exec=touch {canary}",
    "--receive-pack={canary}",
    "--git-dir={canary}",
    "--work-tree=/",
    "--exec-path={canary}",
    "--template={canary}",
    "--separate-git-dir={canary}",
    "--end-of-options",
    "--",
    "-",
    "--help",
    "$(touch {canary})",
    "`touch {canary}`",
    "; touch {canary}",
    "| touch {canary}",
    "\ntouch {canary}",
    "a\0b",
    "\x1b[2J",
    "a\\b",
    "..",
    "../..",
    "a/../b",
    "~root/*",
]


FIELDS = {
    "url": ("{}", "", ""),
    "host": ("https://{}/app.git", "", ""),
    "user": ("ssh://{}@git.test/app.git", "", ""),
    "repository": ("ssh://git@git.test/{}", "", ""),
    "ref": (GOOD, "{}", ""),
    "path": (GOOD, "", "{}"),
}
HARMLESS = ("$(", "`", "; ", "| ", "~")
"""How the name of a folder may begin: no shell ever sees it."""


@pytest.mark.parametrize(
    ("field", "payload"),
    [
        (field, payload)
        for field in FIELDS
        for payload in INJECTIONS
        if field != "path" or not payload.startswith(HARMLESS)
    ],
)
def test_case_71_options_and_shell_words_are_no_part_of_a_reference(
    field: str, payload: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_process(*_arguments: object, **_settings: object) -> NoReturn:
        raise AssertionError

    monkeypatch.setattr(asyncio, "create_subprocess_exec", no_process)
    canary = tmp_path / "canary"
    value = payload.format(canary=canary)
    url, ref, path = (form.replace("{}", value) for form in FIELDS[field])
    with pytest.raises(BadReferenceError):
        GitReference(url=url, ref=ref, path=path)
    assert not canary.exists()


@pytest.mark.parametrize(
    "url",
    [
        "ext::sh -c touch% canary",
        "EXT::sh -c x",
        "ext::sh",
        "fd::7",
        "file:///etc",
        "FILE:///etc",
        "/etc/passwd",
        "./here",
        "../here",
        "here",
        "git://git.test/app.git",
        "http://git.test/app.git",
        "HTTPS://git.test/app.git",
        "ftp://git.test/app.git",
        "git+file:///etc",
        "git+ext::sh",
        "https::https://git.test/app",
        "ssh://-oProxyCommand=x/app",
        "ssh://git@-oProxyCommand=x/app",
        "git@-oProxyCommand=x:app",
        "-oProxyCommand=x@host:app",
        "https:///app.git",
        "https://git.test",
        "https://git.test/",
        "https://git.test:0/a",
        "https://git.test:99999/a",
        "https://git.test:x/a",
        "https://user@git.test/a",
        "https://user:secret@git.test/a",
        "ssh://user:secret@git.test/a",
        "https://git.test/a?ref=x#y",
        "https://git.test/a%00b",
        "https://git.test/%2e%2e/b",
        "https://git.test/a%2fb",
        "https://git.test/a%5cb",
        "https://git.test/a//b",
        "https://git..test/a",
        "https://git.test./a",
        "https://.git.test/a",
        "https://[::1/a",
        "https://[zz]/a",
        "https://[fe80::1%25eth0]/a",
        "https://2130706433/a",
        "https://0x7f000001/a",
        "https://127.1/a",
        "https://0177.0.0.1/a",
        "https://gıt.test/a",
        "https://" + "a" * 300 + ".test/a",
        "https://git.test/" + "a" * 3000,
        "",
    ],
)
def test_case_72_only_https_and_ssh_lead_to_a_repository(url: str) -> None:
    with pytest.raises(BadReferenceError) as caught:
        parse(url)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "path",
    [
        "../../etc",
        "a/../../b",
        "/etc",
        "//etc",
        "a\0b",
        "a\\..\\b",
        "..\\b",
        "%2e%2e/%2e%2e",
        "a%2f..%2fb",
        "a./b",
        "deploy.",
        "deploy ",
        "a//b",
        "a/./b",
        "a/" + "b" * 2000,
        ".git/config",
        "a/.GIT",
        "git~1",
        ".g\u200cit",
        "a\nb",
        "a\u2028b",
        "%ff",
        "%zz",
    ],
)
def test_case_75_paths_stay_inside(path: str) -> None:
    with pytest.raises(BadReferenceError):
        parse(f"{GOOD}?path={path}")


@pytest.mark.parametrize(
    "ref",
    [
        "a..b",
        "refs/heads/../../x",
        "a@{1}",
        "@",
        "a.lock",
        "a/b.lock/c",
        ".a",
        "a/.b",
        "a b",
        "a~1",
        "a^",
        "a:b",
        "a?",
        "a*",
        "a[b",
        "a\\b",
        "/a",
        "a/",
        "a//b",
        "a.",
        "a\x7f",
        "a\u00a0b",
        "a" * 300,
    ],
)
def test_case_78_refs_that_git_would_refuse_are_refused(ref: str) -> None:
    with pytest.raises(BadReferenceError, match="ref"):
        GitReference(url=GOOD, ref=ref)


@pytest.mark.parametrize(
    ("text", "url", "ref", "path"),
    [
        (GOOD, GOOD, "", ""),
        (f"git+{GOOD}?ref=main", GOOD, "main", ""),
        (f"{GOOD}/?ref=feature%2Fx&path=./deploy/base/", GOOD, "feature/x", "deploy/base"),
        (f"{GOOD}?path=.", GOOD, "", ""),
        (f"{GOOD}?ref=a%23b&path=a+b%20c", GOOD, "a#b", "a+b c"),
        ("https://Git.Test:443/a", "https://git.test/a", "", ""),
        ("https://git.test:8443/a", "https://git.test:8443/a", "", ""),
        ("https://[2001:DB8::1]:8443/a", "https://[2001:db8::1]:8443/a", "", ""),
        ("https://10.0.0.1/a%20b/_git/c", "https://10.0.0.1/a%20b/_git/c", "", ""),
        ("ssh://git@git.test:22/~a/b.git", "ssh://git@git.test/~a/b.git", "", ""),
        ("ssh://git.test/a", "ssh://git.test/a", "", ""),
        ("git+ssh://git@git.test:2222/a", "ssh://git@git.test:2222/a", "", ""),
        ("git@git.test:a/b.git?ref=v1.0", "git@git.test:a/b.git", "v1.0", ""),
        (f"{GOOD}?ref=größe", GOOD, "größe", ""),
    ],
)
def test_what_is_fine_has_one_spelling(text: str, url: str, ref: str, path: str) -> None:
    reference = parse(text)
    assert (reference.url, reference.ref, reference.path) == (url, ref, path)
    assert parse(reference.url) == GitReference(url=url)


def test_an_unencrypted_connection_is_for_those_who_ask_for_it() -> None:
    assert parse("http://git.test/a", allow_http=True).remote.scheme == "http"


@pytest.mark.parametrize(
    ("query", "said"), [("branch=x", "is not a field"), ("ref=a&ref=b", "is there twice")]
)
def test_unknown_and_repeated_fields_are_told(query: str, said: str) -> None:
    with pytest.raises(BadReferenceError, match=said):
        parse(f"{GOOD}?{query}")


def test_the_origin_is_what_credentials_are_bound_to() -> None:
    remote = parse("https://Git.Test:8443/a/b.git").remote
    assert (remote.origin, remote.authority) == ("https://git.test:8443", "git.test:8443")
    assert parse("https://git.test:443/a").remote.origin == "https://git.test"
