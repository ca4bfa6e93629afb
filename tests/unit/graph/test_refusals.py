"""What an API server has against an object, as a person is told, and whether time may help.

The answers are those of an API server of version 1.36.
"""

from typing import Any

import msgspec
import pytest

from pequod.api import reasons
from pequod.base.logs import one_line
from pequod.graph.desired import UnusableObjectError
from pequod.graph.model import Ref
from pequod.graph.problems import (
    conflict,
    explained,
    is_absent,
    is_immutable,
    is_terminating,
)
from pequod.graph.record import LONGEST_TEXT, Problem
from pequod.kube import errors
from pequod.kube.errors import ApiError, FieldConflictError, KubeError, api_error

IT = Ref("apps", "Deployment", "shop", "web")
CANARY = "hunter2-canary"


def answer(code: int, message: str = "", reason: str = "", *causes: dict[str, str]) -> ApiError:
    status: dict[str, Any] = {"kind": "Status", "code": code, "message": message, "reason": reason}
    if causes:
        status["details"] = {"causes": list(causes)}
    return api_error(code, msgspec.json.encode(status))


def cause(message: str, field: str = "spec", reason: str = "FieldValueInvalid") -> dict[str, str]:
    return {"reason": reason, "message": message, "field": field}


def taken(manager: str, field: str) -> dict[str, str]:
    return cause(f'conflict with "{manager}" using apps/v1', field, "FieldManagerConflict")


def told(error: Exception, *, sensitive: bool = False) -> Problem:
    found = explained(error, IT, sensitive=sensitive)
    assert found.message.startswith("Deployment/shop/web: ")
    assert found.applying
    return found


def fought_over(*causes: dict[str, str]) -> FieldConflictError:
    error = answer(409, "Apply failed with conflicts", "Conflict", *causes)
    assert isinstance(error, FieldConflictError)
    return error


def test_a_conflict_names_managers_and_fields_and_the_way_out() -> None:
    error = fought_over(
        taken("kubectl", ".spec.replicas"),
        taken("helm", ".spec.paused"),
        taken("kubectl", '.spec.template.spec.containers[name="app"].image'),
    )
    assert told(error) == Problem(
        reasons.FIELD_CONFLICT,
        'Deployment/shop/web: kubectl manages .spec.replicas, .spec.template.spec.containers[name="'
        'app"].image; helm manages .spec.paused: remove these fields from the graph, or set '
        "applyPolicy.conflictPolicy to Force",
    )


def test_of_many_fields_some_are_named() -> None:
    error = fought_over(*(taken("kubectl", f".f{i}") for i in range(9)))
    assert "kubectl manages .f0, .f1, .f2, .f3, .f4 and 4 more: remove" in told(error).message


def test_a_fight_names_who_keeps_taking_the_field() -> None:
    found = conflict(fought_over(taken("kubectl", ".spec.replicas")), IT, fought=True)
    assert found == Problem(
        reasons.OWNERSHIP_CONFLICT,
        "Deployment/shop/web: kubectl manages .spec.replicas, and keeps taking it back: stop that "
        "manager, or remove these fields from the graph",
    )


IMMUTABLE = {
    "selector of a Deployment": cause(
        'Invalid value: {"matchLabels":{"app":"b"}}: field is immutable', "spec.selector"
    ),
    "claims of a StatefulSet": cause(
        "Forbidden: updates to statefulset spec for fields other than 'replicas', 'ordinals', "
        "'template', 'updateStrategy', 'revisionHistoryLimit', "
        "'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden",
        "spec",
        "FieldValueForbidden",
    ),
    "template of a Job": cause("Invalid value: {}: field is immutable", "spec.template"),
    "size of a PersistentVolumeClaim": cause(
        "Forbidden: spec is immutable after creation except resources.requests and "
        "volumeAttributesClassName for bound claims\n@@ -1,3 +1,3 @@\n- a\n+ b",
        "spec",
        "FieldValueForbidden",
    ),
    "immutable Secret": cause(
        "Forbidden: field is immutable when `immutable` is set", "data", "FieldValueForbidden"
    ),
    "spec of a Pod": cause(
        "Forbidden: pod updates may not change fields other than `spec.containers[*].image`",
        "spec",
        "FieldValueForbidden",
    ),
    "address of a Service": cause(
        'Invalid value: ["10.0.0.1"]: may not change once set', "spec.clusterIPs[0]"
    ),
    "role of a RoleBinding": cause("Invalid value: {}: cannot change roleRef", "roleRef"),
    "provisioner of a StorageClass": cause(
        "Forbidden: updates to provisioner are forbidden.", "provisioner", "FieldValueForbidden"
    ),
    "rule of a custom resource": cause(
        'Invalid value: "b": failed rule: self == oldSelf', "spec.name"
    ),
    "rule with words of its own": cause('Invalid value: "b": it cannot be changed', "spec.name"),
    "value of a PriorityClass": cause(
        "Forbidden: may not be changed in an update.", "value", "FieldValueForbidden"
    ),
}


@pytest.mark.parametrize("what", IMMUTABLE)
def test_a_field_that_cannot_change_is_named_with_the_ways_out(what: str) -> None:
    one = IMMUTABLE[what]
    error = answer(422, f'Kind "web" is invalid: {one["message"]}', "Invalid", one)
    assert is_immutable(error)
    found = told(error)
    assert found.reason == reasons.IMMUTABLE
    assert not found.transient
    assert f"{one['field']} cannot be changed (" in found.message
    assert "applyPolicy.recreate to OnImmutable" in found.message
    assert "@@" not in found.message


def test_a_policy_that_refuses_a_change_is_no_reason_to_delete_anything() -> None:
    """It names no field: what it says may sound alike."""
    text = "denied request: replicas must not be changed during the freeze"
    assert not is_immutable(answer(422, text, "", cause(text, "")))


def test_what_helps_is_said_however_much_the_api_server_says() -> None:
    text = f"{'x' * 5000}: field is immutable"
    error = answer(422, text, "", cause(text))
    assert "set applyPolicy.recreate to OnImmutable" in one_line(told(error).message, LONGEST_TEXT)


def test_an_object_that_is_merely_wrong_is_not_immutable() -> None:
    wrong = cause("Invalid value: -1: must be greater than or equal to 0", "spec.replicas")
    error = answer(422, 'Deployment.apps "web" is invalid: spec.replicas: -1', "Invalid", wrong)
    assert not is_immutable(error)
    assert told(error) == Problem(
        reasons.INVALID,
        'Deployment/shop/web: Deployment.apps "web" is invalid: spec.replicas: -1',
    )
    assert not is_immutable(errors.TimedOutError("field is immutable"))


@pytest.mark.parametrize(
    "message",
    [
        "failed to create typed patch object (shop/web; apps/v1, Kind=Deployment): "
        '.spec.template.spec.containers: duplicate entries for key [name="a"]',
        "failed to convert new object (shop/web; apps/v1, Kind=Deployment) to smd typed: "
        "something else",
    ],
)
def test_a_500_about_our_own_object_is_our_mistake_and_no_time_helps(message: str) -> None:
    found = told(answer(500, message, "InternalError"))
    assert found == Problem(reasons.INVALID, f"Deployment/shop/web: {message}")


TYPED = "failed to create typed patch object (shop/web; /v1, Kind=ConfigMap): "
MISREAD = {
    TYPED + f".data.port: expected string, got &value.valueUnstructured{{Value:{CANARY}}}": (
        "data.port must be a string: quote it"
    ),
    TYPED + "errors:\n"
    '  .spec.env[name="P"].value: expected string, got &value.valueUnstructured{Value:80}\n'
    "  .spec.replicas: expected numeric (int or float), got string": (
        'spec.env[name="P"].value must be a string: quote it; '
        "spec.replicas must be a number, without quotes"
    ),
    TYPED + ".spec.x: field not declared in schema": (
        "spec.x is not known: correct its name, or remove it"
    ),
    "failed to convert new object (shop/web; /v1, Kind=Secret) to proper version: unable to "
    "convert unstructured object to /v1, Kind=Secret: error decoding from json: illegal base64 "
    "data at input byte 5": (
        "each value of data of a Secret, or binaryData of a ConfigMap, must be base64: use "
        "stringData, or data, for plain text"
    ),
}


@pytest.mark.parametrize("message", MISREAD)
def test_fields_of_another_type_are_named_with_what_to_write_instead(message: str) -> None:
    found = told(answer(500, message, "InternalError"))
    assert found == Problem(reasons.INVALID, f"Deployment/shop/web: {MISREAD[message]}")


def test_fields_of_a_sensitive_object_are_named_unless_values_are_in_their_names() -> None:
    [first, second, *_] = MISREAD
    shown = told(answer(500, first), sensitive=True).message
    assert shown == "Deployment/shop/web: data.port must be a string: quote it"
    assert "values are not shown" in told(answer(500, second), sensitive=True).message


@pytest.mark.parametrize("code", [500, 502, 503, 504, 507])
def test_an_api_server_in_trouble_is_tried_again(code: int) -> None:
    found = told(answer(code, "etcdserver: request timed out"))
    assert found.transient
    assert found.reason == reasons.SERVER_ERROR
    assert found.message.endswith("etcdserver: request timed out; it is tried again")


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (errors.TimedOutError("no answer in 10 s"), reasons.TIMED_OUT),
        (errors.UnreachableError("connection refused"), reasons.UNREACHABLE),
        (errors.UntrustedServerError("certificate"), reasons.UNTRUSTED_SERVER),
        (errors.BrokenAnswerError("ended early"), reasons.BROKEN_ANSWER),
        (answer(429, "too many requests"), reasons.OVERLOADED),
        (answer(401, "Unauthorized"), reasons.UNAUTHORIZED),
    ],
)
def test_what_may_be_over_the_next_time_is_tried_again(
    error: KubeError, reason: reasons.Reason
) -> None:
    found = told(error)
    assert found.transient
    assert found.reason == reason
    assert found.message.endswith("; it is tried again")


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (answer(400, "strict decoding error"), reasons.BAD_REQUEST),
        (answer(403, "may not"), reasons.FORBIDDEN),
        (answer(404, 'namespaces "shop" not found'), reasons.NOT_FOUND),
        (answer(409, "the object has been modified", "Conflict"), reasons.CONFLICT),
        (answer(413, "too large"), reasons.TOO_LARGE),
        (answer(422, "wrong"), reasons.INVALID),
        (answer(418, "a teapot"), reasons.API_ERROR),
        (errors.UnknownKindError("no such kind"), reasons.UNKNOWN_KIND),
        (UnusableObjectError("Secret does not hold a JSON object"), reasons.INVALID),
    ],
)
def test_every_other_refusal_has_its_reason_and_says_what_was_said(
    error: Exception, reason: reasons.Reason
) -> None:
    found = told(error)
    assert found.reason == reason
    assert str(error) in found.message


def test_what_is_missing_is_to_be_created() -> None:
    found = told(answer(404, 'namespaces "shop" not found', "NotFound"))
    assert found.message.endswith('namespaces "shop" not found; create what is missing')


def test_a_namespace_that_is_being_deleted_is_told_apart_from_missing_rights() -> None:
    one = cause("namespace shop is being terminated", "metadata.namespace", "NamespaceTerminating")
    error = answer(403, "unable to create new content in namespace shop", "Forbidden", one)
    assert is_terminating(error)
    assert not is_terminating(answer(403, "may not", "Forbidden"))
    found = told(error)
    assert found.reason == reasons.NAMESPACE_TERMINATING
    assert "the namespace shop is being deleted" in found.message


def test_an_object_that_is_not_there_any_more_is_told_by_its_uid() -> None:
    absent = answer(
        409,
        'Operation cannot be fulfilled on deployments.apps "web": uid mismatch: the provided object'
        " specified uid a, and no existing object was found",
        "Conflict",
    )
    another = answer(
        422,
        'Deployment.apps "web" is invalid: metadata.uid: field is immutable',
        "Invalid",
        cause("field is immutable", "metadata.uid"),
    )
    assert is_absent(absent)
    assert is_absent(another)
    assert not is_immutable(another)
    assert not is_absent(answer(409, "the object has been modified", "Conflict"))
    assert not is_absent(errors.TimedOutError("uid mismatch"))


def test_a_bug_of_ours_is_told_by_its_kind_only_and_tried_again() -> None:
    found = told(ValueError(f"what {CANARY} holds"))
    assert found.reason == reasons.INTERNAL_ERROR
    assert found.transient
    assert "ValueError" in found.message
    assert CANARY not in found.message


LEAKY: dict[str, ApiError] = {
    f"code {code}": answer(code, f'Secret "it" is invalid: {CANARY}', "", cause(CANARY, "data.a"))
    for code in (400, 401, 403, 404, 409, 410, 413, 418, 422, 429, 500, 503)
} | {
    "immutable": answer(422, CANARY, "", cause(f"{CANARY}: field is immutable", "data")),
    "terminating": answer(403, CANARY, "", cause(CANARY, "", "NamespaceTerminating")),
    "typed": answer(500, f"failed to create typed patch object: {CANARY}"),
    "field conflict": answer(409, CANARY, "Conflict", taken("kubectl", ".data.a")),
    "no status": api_error(500, CANARY.encode()),
    "no status at all": api_error(422, b""),
}


@pytest.mark.parametrize("what", LEAKY)
def test_values_of_a_sensitive_object_are_never_shown(what: str) -> None:
    assert CANARY not in told(LEAKY[what], sensitive=True).message


def test_a_sensitive_object_still_says_where_it_is_wrong() -> None:
    error = answer(422, CANARY, "Invalid", cause(CANARY, "data.a"), cause(CANARY, "type"))
    assert told(error, sensitive=True).message == (
        "Deployment/shop/web: the API server answered with code 422 about data.a, type; "
        "values are not shown"
    )


def test_an_immutable_sensitive_object_names_its_field_only() -> None:
    found = told(LEAKY["immutable"], sensitive=True)
    assert found.reason == reasons.IMMUTABLE
    assert "data cannot be changed: change it back" in found.message


def test_what_is_said_is_on_one_line_and_not_too_long() -> None:
    found = told(answer(422, "a\nb" * 5000, "Invalid"))
    assert "\n" not in found.message
    assert len(found.message) < 700
