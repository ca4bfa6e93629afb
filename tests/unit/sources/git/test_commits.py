"""What a commit says about itself."""

import pytest

from pequod.sources.git.commits import described

HEAD = "tree 1\nparent 2\nauthor Ada L <ada@test> 1700000000 +0100\ncommitter B <b@t> 1 +0000"


def test_author_date_and_subject_are_read() -> None:
    assert described(f"{HEAD}\n\nsubject\n\nbody\n") == {
        "author": "Ada L",
        "authored": "2023-11-14T22:13:20+00:00",
        "subject": "subject",
    }


def test_a_signature_is_not_taken_for_a_message() -> None:
    signed = f"{HEAD}\ngpgsig -----BEGIN\n \n author Eve <e@t> 1 +0000\n -----END\n\nsubject\n"
    assert described(signed)["author"] == "Ada L"
    assert described(signed)["subject"] == "subject"


@pytest.mark.parametrize(
    "author", ["author <> 1 +0000", "author x", "author A <a> 999999999999 +0000", "author A <a> x"]
)
def test_odd_authors_are_left_out(author: str) -> None:
    assert described(f"tree 1\n{author}\n\nsubject")["subject"] == "subject"


def test_long_and_dangerous_subjects_are_cut() -> None:
    subject = described(f"{HEAD}\n\n\x1b[2J{'x' * 500}")["subject"]
    assert len(subject) < 200
    assert "\x1b" not in subject
