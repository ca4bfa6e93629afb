"""CEL as an API server evaluates it, over live objects."""

import re

import pytest

from pequod.evaluator.evaluator import Evaluator

SERVICE = {
    "metadata": {"name": "web", "generation": 2**53 + 1, "labels": {"app": "web"}},
    "spec": {"ports": [{"port": 80}, {"port": 443}], "weight": 0.5},
    "status": {"loadBalancer": {}},
}


async def value(evaluator: Evaluator, expression: str, **variables: object) -> object:
    [answer] = await evaluator.cel([expression], {"self": SERVICE, **variables})
    assert answer.failure is None
    return answer.value


@pytest.mark.parametrize(
    ("expression", "wanted"),
    [
        ("self.metadata.generation", 2**53 + 1),
        ("self.metadata.generation + 1", 2**53 + 2),
        ("9223372036854775807", 2**63 - 1),
        ("18446744073709551615u", 2**64 - 1),
        ("self.spec.ports[1].port", 443),
        ("self.spec.weight", 0.5),
        ("self.spec.weight * 3.0", 1.5),
        ("'a' + self.metadata.name", "aweb"),
        ("self.spec.ports.map(p, p.port)", [80, 443]),
        ("self.spec.ports.all(p, p.port > 0)", True),
        ("{'a': [{'b': null}]}", {"a": [{"b": None}]}),
        ("{1: 'one'}", {"1": "one"}),
        ("null", None),
        ("b'abc'", "YWJj"),
        ("duration('90s')", "90s"),
        ("timestamp('2026-01-31T12:00:00Z')", "2026-01-31T12:00:00Z"),
        ("has(self.status.ready)", False),
        ("self", SERVICE),
    ],
)
async def test_values_keep_their_types(
    evaluator: Evaluator, expression: str, wanted: object
) -> None:
    found = await value(evaluator, expression)
    assert found == wanted
    assert type(found) is type(wanted)


@pytest.mark.parametrize(
    ("expression", "wanted"),
    [
        ("quantity('1Gi').isGreaterThan(quantity('500Mi'))", True),
        ("quantity('1500m').asApproximateFloat()", 1.5),
        ("isQuantity('lots')", False),
        ("url('https://a.example.com:8443/x').getPort()", "8443"),
        ("ip('192.168.0.1').family()", 4),
        ("cidr('10.0.0.0/8').containsIP('10.1.2.3')", True),
        ("'web-42'.find('[0-9]+')", "42"),
        ("'a1b22'.findAll('[0-9]+')", ["1", "22"]),
        ("[3, 1, 2].isSorted()", False),
        ("[3, 1, 2].max()", 3),
        ("[1, 2].sum()", 3),
        ("self.?status.?address.orValue('none')", "none"),
        ("self.?metadata.?name.orValue('none')", "web"),
        ("optional.none()", None),
        ("'a,b'.split(',')", ["a", "b"]),
        ("['a', 'b'].join('-')", "a-b"),
        ("semver('1.2.3').isLessThan(semver('1.10.0'))", True),
        ("sets.contains([1, 2, 3], [2])", True),
        ("[1, 2].exists_one(x, x == 2)", True),
    ],
)
async def test_the_libraries_of_kubernetes_are_there(
    evaluator: Evaluator, expression: str, wanted: object
) -> None:
    assert await value(evaluator, expression) == wanted


@pytest.mark.parametrize(
    "expression",
    [
        "self.status.address",
        "self.status.loadBalancer.ingress[0].ip",
        "self.metadata.labels['tier']",
        "self.spec.ports[7].port",
    ],
)
async def test_what_is_not_there_is_missing_rather_than_wrong(
    evaluator: Evaluator, expression: str
) -> None:
    [answer] = await evaluator.cel([expression], {"self": SERVICE})
    assert answer.failure is not None
    assert answer.failure.kind == "missing"


@pytest.mark.parametrize(
    ("expression", "named"),
    [
        ("self.", "Syntax error"),
        ("", "Syntax error"),
        ("other.name", "undeclared reference to 'other'"),
        ("'a' + 1", "no matching overload"),
        ("self.metadata.name + 1", "no such overload"),
        ("1 / 0", "division by zero"),
        ("9223372036854775807 + 1", "overflow"),
        ("1.0 / 0.0", "no JSON"),
        ("0.0 / 0.0", "no JSON"),
        ("quantity('lots')", "quantit"),
        ("'a'.matches('(')", "invalid matches argument"),
        ("(" * 5000 + "1" + ")" * 5000, "recursion|limit|Syntax"),
    ],
)
async def test_what_is_wrong_is_explained_and_spoils_nothing_else(
    evaluator: Evaluator, expression: str, named: str
) -> None:
    answers = await evaluator.cel(["1 + 1", expression, "self.metadata.name"], {"self": SERVICE})
    assert [answers[0].value, answers[2].value] == [2, "web"]
    failure = answers[1].failure
    assert failure is not None
    assert failure.kind == "module"
    assert re.search(named, failure.message)


async def test_what_costs_too_much_is_a_matter_of_limits(evaluator: Evaluator) -> None:
    costly = "self.all(a, self.all(b, a + b >= 0))"
    numbers = {"self": list(range(100))}
    [affordable] = await evaluator.cel([costly], numbers)
    assert affordable.value is True
    answers = await evaluator.cel(["1", costly, "2"], numbers, cost_limit=affordable.cost - 1)
    assert [answers[0].value, answers[2].value] == [1, 2]
    assert answers[1].failure is not None
    assert answers[1].failure.kind == "limit"


async def test_the_cost_is_told(evaluator: Evaluator) -> None:
    one, more = await evaluator.cel(["1 + 1", "self.map(x, x * 2)"], {"self": [1, 2, 3]})
    assert 0 < one.cost < more.cost


async def test_a_program_is_not_mixed_up_with_one_of_other_variables(evaluator: Evaluator) -> None:
    assert await value(evaluator, "extra", extra=1) == 1
    [answer] = await evaluator.cel(["extra"], {"self": {}})
    assert answer.failure is not None
    assert await value(evaluator, "extra", extra="text") == "text"


async def test_no_expressions_have_no_answers(evaluator: Evaluator) -> None:
    assert await evaluator.cel([], {}) == ()
