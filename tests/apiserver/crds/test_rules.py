"""Every rule of the schemas, broken once: the API server refuses it in words that help."""

from dataclasses import dataclass
from typing import Any

import pytest

from clusters import Api
from schemas import Path_, kinds, replaced, rules


@dataclass(frozen=True)
class Broken:
    """A complete sample with one place changed, and what the user must read."""

    kind: str
    path: Path_
    value: object
    message: str
    sample: int = 0

    def __str__(self) -> str:
        return f"{self.kind}{'.'.join(map(str, self.path))}: {self.message[:40]}"


def _cue(kind: str, ref: str, message: str, **more: object) -> Broken:
    value = {"type": kind, "ref": ref, **more}
    return Broken("Transform", ("spec", "cueRef"), value, message)


def _ready(message: str, **predicate: object) -> Broken:
    path = ("spec", "nodes", 0, "readyWhen", 0)
    return Broken("ResourceGraph", path, predicate, message)


IMMUTABLE = "is immutable: create a new object instead"
ADOPT = ("spec", "adopt")
EXPRESSION = (*ADOPT, "labelSelector", "matchExpressions", 0)
STEP = ("spec", "rollout", "steps", 0)
PROGRAMS = ("spec", "components")
KEY = "signerPrivateKeySecret"
CONTRACTS = ("spec", "l1", "contractAddresses")
ONE_STEP = "a step sets exactly one of setWeight, pause, analysis"

BROKEN = [
    _cue("configmap", "Not/A/Name", "is the name of a ConfigMap in the same namespace"),
    _cue("embedded", "Web Service", "is the name of a shipped module"),
    _cue("oci", "no spaces please", "looks like registry.example.com/path/module:v1"),
    _cue("oci", "--upload-pack=evil", "looks like registry.example.com/path/module:v1"),
    _cue("git", "ext::sh -c evil", "is an https, http or ssh URL, or user@host:path"),
    _cue("git", "file:///etc", "is an https, http or ssh URL, or user@host:path"),
    _cue("git", "git@-oProxyCommand=evil:x", "is an https, http or ssh URL, or user@host:path"),
    _cue("git", "https://me:secret@git.example.com/x", "put them into a Secret"),
    _cue("inline", "input: {}", "belongs to the types oci and git", pullSecretRef={"name": "x"}),
    _cue("git", "ssh://-oProxyCommand=evil/x", "is an https, http or ssh URL"),
    _cue("git", "ssh://git@-oProxyCommand=evil/x", "is an https, http or ssh URL"),
    _cue("git", "ssh://me:secret@git.example.com/x", "put them into a Secret"),
    _cue("inline", "input: {}", "which is a single text", path="sub"),
    _cue("git", "https://git.example.com/x", "without '..'", path="a/../../b"),
    _cue("git", "https://git.example.com/x", "without '..'", path="/etc"),
    Broken("Transform", ("spec", "interval"), "500ms", "must be at least 1s"),
    Broken("Transform", ("spec", "rollout", "deadline"), "0s", "must be at least 1s"),
    Broken("Transform", (*ADOPT, "resources"), [], "name at least one object to adopt"),
    Broken("Transform", (*ADOPT, "labelSelector"), {"matchLabels": {"a": "b"}}, "not both"),
    Broken("Transform", (*ADOPT, "labelSelector"), ..., "say which objects to adopt", sample=1),
    Broken("Transform", (*ADOPT, "labelSelector"), {}, "would adopt everything", sample=1),
    Broken("Transform", (*EXPRESSION, "values"), [], "In and NotIn need values", sample=1),
    Broken("Transform", (*EXPRESSION, "operator"), "Exists", "have none", sample=1),
    Broken("Transform", STEP, {}, ONE_STEP),
    Broken("Transform", STEP, {"setWeight": 1, "pause": {}}, ONE_STEP),
    Broken("Transform", ("spec", "rollout", "strategy"), "AllAtOnce", "to strategy Canary only"),
    Broken("Transform", ("spec", "rollout", "steps"), [], "needs at least one step"),
    _ready("ConditionMatch, which needs it", type="ConditionMatch"),
    _ready("ConditionMatch, which needs it", type="Exists", conditionType="Ready"),
    _ready("conditionStatus belongs to type", type="Exists", conditionStatus="True"),
    _ready("type CEL, which needs it", type="CEL"),
    _ready("type CEL, which needs it", type="Exists", expression="true"),
    _ready("type HTTP, which needs it", type="HTTP"),
    _ready("expectStatus belongs to type HTTP only", type="Exists", expectStatus=200),
    _ready("must be at least 1s", type="Exists", timeout="10ms"),
    Broken("OPChain", ("spec", "l1", "rpcUrl"), ..., "exactly one of rpcUrl, rpcUrlSecretRef"),
    Broken("OPChain", (*PROGRAMS, "batcher", KEY), ..., "the batcher needs signerPrivateKeySecret"),
    Broken("OPChain", (*PROGRAMS, "proposer", KEY), ..., "proposer needs signerPrivateKeySecret"),
    Broken("OPChain", (*CONTRACTS, "disputeGameFactory"), ..., "the proposer needs one of"),
    Broken("OPChain", (*CONTRACTS, "l2OutputOracle"), f"0x{'1' * 40}", "the proposer needs one of"),
    Broken("OPChain", ("spec", "health", "stallWindow"), "10ms", "must be at least 1s"),
    Broken("ResourceGraph", ("spec", "nodes"), [], "set allowEmpty if it is meant", sample=1),
    Broken("ResourceGraph", (*ADOPT, "resources"), [], "name at least one object to adopt"),
]

CHANGES = [
    (("sourceRef", "name"), "another", "cannot point to another object"),
    (("sourceRef", "namespace"), "another", "cannot point to another object"),
    (("sourceRef", "apiVersion"), "another.io/v1", "cannot point to another object"),
    (("sourceRef",), None, "cannot be removed: delete the graph instead"),
    (("clusterRef", "name"), "another", "the inventory belongs to the cluster"),
    (("clusterRef",), None, "the inventory belongs to the cluster"),
]


@pytest.mark.parametrize("broken", BROKEN, ids=str)
def test_a_broken_rule_is_refused_with_a_sentence_that_helps(
    broken: Broken, as_operator: Api, namespace: str
) -> None:
    kind = kinds()[broken.kind]
    sample = replaced(kind.samples()[broken.sample], broken.path, broken.value)
    answer = as_operator.create(kind.collection(namespace), sample, dry_run=True)
    assert answer.code == 422, answer.body
    assert broken.message in answer.message


@pytest.mark.parametrize(("path", "value", "message"), CHANGES)
def test_what_a_graph_belongs_to_cannot_change(
    path: tuple[str, ...], value: object, message: str, as_operator: Api, namespace: str
) -> None:
    kind = kinds()["ResourceGraph"]
    sample = kind.samples()[0]
    assert as_operator.create(kind.collection(namespace), sample).code == 201
    patch: Any = value
    for step in reversed(path):
        patch = {step: patch}
    url = f"{kind.collection(namespace)}/{sample['metadata']['name']}"
    answer = as_operator.patch(url, {"spec": patch})
    assert answer.code == 422, answer.body
    assert message in answer.message


def test_the_uid_of_a_source_may_change_because_a_restored_backup_has_another(
    as_operator: Api, namespace: str
) -> None:
    kind = kinds()["ResourceGraph"]
    sample = kind.samples()[0]
    assert as_operator.create(kind.collection(namespace), sample).code == 201
    url = f"{kind.collection(namespace)}/{sample['metadata']['name']}"
    assert as_operator.patch(url, {"spec": {"sourceRef": {"uid": "restored"}}}).code == 200


def test_a_chain_keeps_its_chain_id(api: Api, namespace: str) -> None:
    kind = kinds()["OPChain"]
    sample = kind.samples()[0]
    assert api.create(kind.collection(namespace), sample).code == 201
    url = f"{kind.collection(namespace)}/{sample['metadata']['name']}"
    answer = api.patch(url, {"spec": {"l2": {"chainId": 778}}})
    assert answer.code == 422, answer.body
    assert IMMUTABLE in answer.message


def test_every_rule_of_every_kind_is_broken_above() -> None:
    proven = [broken.message for broken in BROKEN] + [message for _, _, message in CHANGES]
    proven.append(IMMUTABLE)
    unproven = {
        rule["message"]
        for kind in kinds().values()
        for rule in rules(kind.schema)
        if not any(fragment in rule["message"] for fragment in proven)
    }
    assert unproven == set()
