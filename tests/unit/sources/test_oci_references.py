"""What names an artifact, and what does not."""

import pytest

from pequod.sources.errors import BadReferenceError
from pequod.sources.oci.reference import OciReference, parse

DIGEST = "sha256:" + "a1" * 32


@pytest.mark.parametrize(
    ("text", "reference"),
    [
        (
            "oci://ghcr.io/team/app:v1",
            OciReference(host="ghcr.io", repository="team/app", tag="v1"),
        ),
        ("ghcr.io/app", OciReference(host="ghcr.io", repository="app", tag="latest")),
        (
            "localhost:5000/a/b/c",
            OciReference(host="localhost:5000", repository="a/b/c", tag="latest"),
        ),
        ("localhost/a", OciReference(host="localhost", repository="a", tag="latest")),
        ("registry:5000/a", OciReference(host="registry:5000", repository="a", tag="latest")),
        ("[::1]:5000/a", OciReference(host="[::1]:5000", repository="a", tag="latest")),
        ("GHCR.io/app:V1", OciReference(host="ghcr.io", repository="app", tag="V1")),
        (f"ghcr.io/app@{DIGEST}", OciReference(host="ghcr.io", repository="app", digest=DIGEST)),
        (
            f"ghcr.io/app:v1@{DIGEST}",
            OciReference(host="ghcr.io", repository="app", tag="v1", digest=DIGEST),
        ),
        (
            "docker.io/team/app",
            OciReference(host="registry-1.docker.io", repository="team/app", tag="latest"),
        ),
        (
            "index.docker.io/nginx:1",
            OciReference(host="registry-1.docker.io", repository="library/nginx", tag="1"),
        ),
    ],
)
def test_a_reference_is_read(text: str, reference: OciReference) -> None:
    assert parse(text) == reference
    assert parse(str(reference)) == reference


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "no repository"),
        ("ghcr.io", "no repository"),
        ("ghcr.io/", "not a repository"),
        ("team/app", "none is guessed"),
        ("nginx", "no repository"),
        ("https://ghcr.io/app", "only oci://"),
        ("oci://oci://ghcr.io/app", "only oci://"),
        ("file:///etc/passwd", "only oci://"),
        ("/etc/passwd", "not a host"),
        ("-o.example/app", "not a host"),
        ("ghcr.io:0/app", "not a port"),
        ("ghcr.io:99999/app", "not a port"),
        ("ghcr.io:x/app", "not a host"),
        ("gh cr.io/app", "not a host"),
        ("ghcr..io/app", "not a host"),
        ("ghcr.io/App", "not a repository"),
        ("ghcr.io/../app", "not a repository"),
        ("ghcr.io/a//b", "not a repository"),
        ("ghcr.io/a%2fb", "not a repository"),
        ("ghcr.io/" + "a" * 256, "not a repository"),
        ("ghcr.io/app:", "not a tag"),
        ("ghcr.io/app:-v1", "not a tag"),
        ("ghcr.io/app:a/b", "not a tag"),
        ("ghcr.io/app:" + "a" * 129, "not a tag"),
        ("ghcr.io/app@", "not a digest"),
        ("ghcr.io/app@sha256:abc", "not a digest"),
        ("ghcr.io/app@md5:" + "a" * 64, "not a digest"),
        (f"ghcr.io/app@{DIGEST.upper()}", "not a digest"),
        ("ghcr.io/app\n", "not a repository"),
        ("ghcr.io/app:v1?x", "not a tag"),
        ("ghcr.io/" + "a/" * 1000, "longer than"),
    ],
)
def test_case_71_what_is_no_reference_is_refused(text: str, problem: str) -> None:
    with pytest.raises(BadReferenceError, match=problem) as caught:
        parse(text)
    assert "\n" not in str(caught.value)


def test_a_password_in_a_reference_is_refused_and_not_repeated() -> None:
    with pytest.raises(BadReferenceError, match="put them into a Secret") as caught:
        parse("oci://ada:s3cr3t@ghcr.io/app")
    assert "s3cr3t" not in str(caught.value)
