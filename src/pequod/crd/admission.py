"""Who may write graphs: a ValidatingAdmissionPolicy, and the binding that puts it in force.

A graph that has a source is the operator's own text, and the inventory in a status is a licence to
delete. RBAC cannot tell such a graph from one made by hand, nor a spec from a label.
"""

from typing import Any

from pequod.api.platform import ResourceGraph
from pequod.crd.manifests import manifest
from pequod.settings import NAME, NAMESPACE

OPERATOR = f"system:serviceaccount:{NAMESPACE}:{NAME}"
"""The operator's account, as the API server calls it."""

ABOUT = f"""\
Who may write ResourceGraphs, beyond what RBAC can say.

Only {OPERATOR}
- creates graphs with spec.sourceRef, adds one, or changes the spec of a graph that has one;
- writes the status of any graph, because it deletes what the inventory in it lists.
Labels, annotations, finalizers and graphs without a source are left to RBAC. Administrators are no
exception; those who may impersonate the operator's account can act as it:

  kubectl --as={OPERATOR} --as-group=system:masters …
"""

_API = "admissionregistration.k8s.io"

_VARIABLES = {
    # There is no oldObject when an object is created.
    "had": "oldObject != null && oldObject.?spec.?sourceRef.hasValue()",
    "sourced": "object.?spec.?sourceRef.hasValue()",
    "source": "variables.had ? oldObject.spec.sourceRef : object.spec.sourceRef",
    "named": "variables.source.kind"
    " + (has(variables.source.namespace) ? '/' + variables.source.namespace : '')"
    " + '/' + variables.source.name",
}


def resourcegraph_admission() -> list[dict[str, Any]]:
    """The policy over ResourceGraphs, and its binding."""
    name = ResourceGraph.definition.name
    policy = manifest(f"{_API}/v1", "ValidatingAdmissionPolicy", name=name)
    binding = manifest(f"{_API}/v1", "ValidatingAdmissionPolicyBinding", name=name)
    return [
        policy | {"spec": _policy()},
        binding | {"spec": {"policyName": name, "validationActions": ["Deny"]}},
    ]


def _policy() -> dict[str, Any]:
    definition = ResourceGraph.definition
    resource_rule = {
        "apiGroups": [definition.group],
        "apiVersions": [definition.version],
        "operations": ["CREATE", "UPDATE"],
        "resources": [definition.plural, f"{definition.plural}/status"],
    }
    return {
        "failurePolicy": "Fail",
        # Other versions of the kind, once there are some, are converted before they are looked at.
        "matchConstraints": {"matchPolicy": "Equivalent", "resourceRules": [resource_rule]},
        "matchConditions": [
            {
                "name": "not-the-operator",
                "expression": f"request.userInfo.username != '{OPERATOR}'",
            }
        ],
        "variables": [
            {"name": name, "expression": expression} for name, expression in _VARIABLES.items()
        ],
        "validations": [_no_status(), _no_new_source(), _no_other_spec()],
    }


def _no_status() -> dict[str, str]:
    return {
        "expression": "request.?subResource.orValue('') != 'status'",
        "message": "only the operator writes the status of a graph, because it deletes what the"
        " inventory lists: to have the status brought up to date, change the annotation"
        " reconcile.pequod.io/requestedAt of the graph",
        "reason": "Forbidden",
    }


def _no_new_source() -> dict[str, str]:
    return {
        "expression": "variables.had || !variables.sourced",
        "messageExpression": "'only the operator makes graphs for a source: create or edit '"
        " + variables.named + ' instead, or leave out spec.sourceRef'",
        "message": "only the operator makes graphs for a source: create or edit the source"
        " instead, or leave out spec.sourceRef",
        "reason": "Forbidden",
    }


def _no_other_spec() -> dict[str, str]:
    return {
        "expression": "!variables.had || object.spec == oldObject.spec",
        "messageExpression": "'only the operator changes this graph, which is made from '"
        " + variables.named + ': edit that instead'",
        "message": "only the operator changes this graph, which is made from a source: edit"
        " the source instead",
        "reason": "Forbidden",
    }
