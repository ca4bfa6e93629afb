"""An answer that is no success becomes the error that it stands for."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pequod.api.reasons import Reason
from pequod.kube import errors
from pequod.kube.errors import ApiError, FieldConflict, FieldConflictError, KubeError, api_error


def body(code: int, reason: str = "", message: str = "", **details: object) -> bytes:
    status = {"kind": "Status", "code": code, "reason": reason, "message": message}
    return msgspec.json.encode(status | ({"details": details} if details else {}))


@pytest.mark.parametrize(
    ("code", "reason", "expected"),
    [
        (400, "BadRequest", errors.BadRequestError),
        (401, "Unauthorized", errors.UnauthorizedError),
        (403, "Forbidden", errors.ForbiddenError),
        (404, "NotFound", errors.NotFoundError),
        (409, "Conflict", errors.ConflictError),
        (409, "AlreadyExists", errors.AlreadyExistsError),
        (410, "Expired", errors.GoneError),
        (413, "RequestEntityTooLarge", errors.TooLargeError),
        (422, "Invalid", errors.InvalidError),
        (429, "TooManyRequests", errors.OverloadedError),
        (500, "InternalError", errors.ServerError),
        (503, "ServiceUnavailable", errors.ServerError),
        (302, "", ApiError),
        (418, "", ApiError),
    ],
)
def test_every_code_has_its_error(code: int, reason: str, expected: type[ApiError]) -> None:
    error = api_error(code, body(code, reason, "said so"))
    assert type(error) is expected
    assert str(error) == "said so"
    assert isinstance(error.reason, Reason)


def test_a_field_conflict_names_managers_and_fields() -> None:
    causes = [
        {
            "reason": "FieldManagerConflict",
            "message": 'conflict with "kubectl" using v1',
            "field": ".data.a",
        },
        {
            "reason": "FieldManagerConflict",
            "message": 'conflict with "a \\"b\\"" with subresource "status"',
            "field": ".status.x",
        },
        {"reason": "FieldManagerConflict", "message": "in new words", "field": ".c"},
        {"reason": "Other", "message": "", "field": ".d"},
    ]
    error = api_error(409, body(409, "Conflict", "conflicts", causes=causes))
    assert isinstance(error, FieldConflictError)
    assert error.conflicts[0] == FieldConflict("kubectl", ".data.a")
    assert error.conflicts[2] == FieldConflict("in new words", ".c")
    assert error.conflicts[1].part == "status"
    assert len(error.conflicts) == 3


def test_some_conflicts_may_be_left_out_of_account() -> None:
    causes = [
        {
            "reason": "FieldManagerConflict",
            "message": f'conflict with "{manager}" using v1',
            "field": ".data.a",
        }
        for manager in ("kubectl", "helm")
    ]
    error = api_error(409, body(409, "Conflict", "conflicts", causes=causes))
    assert isinstance(error, FieldConflictError)
    left = error.with_others(lambda conflict: conflict.manager == "helm")
    assert left is not None
    assert left.conflicts == (FieldConflict("kubectl", ".data.a"),)
    assert error.with_others(lambda _: True) is None


def test_another_object_of_the_same_name_is_a_conflict() -> None:
    causes = [{"reason": "FieldValueInvalid", "message": "immutable", "field": "metadata.uid"}]
    assert type(api_error(422, body(422, "Invalid", causes=causes))) is errors.ConflictError


def test_the_time_to_come_back_is_read_from_the_header_or_the_details() -> None:
    assert api_error(429, b"", retry_after="7").retry_after == 7
    assert api_error(429, body(429, retryAfterSeconds=3)).retry_after == 3
    assert api_error(429, b"", retry_after="Wed, 21 Oct 2026 07:28:00 GMT").retry_after is None


@given(code=st.integers(300, 599), content=st.binary(max_size=3000))
def test_whatever_a_server_answers_is_an_error_of_one_short_line(code: int, content: bytes) -> None:
    error = api_error(code, content)
    assert isinstance(error, KubeError)
    assert "\n" not in str(error)
    assert "\x1b" not in str(error)
    assert 0 < len(str(error)) < 12_000


def test_every_error_has_a_reason_that_is_explained() -> None:
    found = [error for error in vars(errors).values() if isinstance(error, type)]
    kinds = [error for error in found if issubclass(error, KubeError)]
    assert len(kinds) > 15
    assert all(error.reason.sentence for error in kinds)
