"""Strings with expressions in them: nothing of the rest is lost or changed."""

from hypothesis import given
from hypothesis import strategies as st

from pequod.graph.values import Expression, template

NOISE = ["$", "{", "}", "${", "'", '"', '"""', "\\", "nodes", "nodes.", ".", "a", "[", "]", "\n"]
PIECES = [*NOISE, " ", "#", "${HOME}", "$(x)", "é", "`", "(", ")", "?", ":", "0", "r", "//"]
EXPRESSIONS = [
    "nodes.a.x",
    "nodes.my-db.status.host",
    'nodes["b"].x + "}"',
    "has(nodes.c.x) ? {'a': nodes.c.x}.a : ''",
    'string(nodes.d.x) + """ "}" """',
]
texts = st.lists(st.sampled_from(PIECES), max_size=24).map("".join)
plain = st.lists(st.sampled_from([" ", "a", "x}", "${HOME}", "it's", '"', "{", "$x "]), max_size=6)


@given(texts)
def test_what_is_read_can_be_written_again_to_the_letter(text: str) -> None:
    """Whatever a string holds: it stays, is refused, or falls into its parts."""
    made = template({"data": text})
    if made is None or made.problems:
        return
    (place,) = made.places
    written = "".join(
        f"${{{part.text}}}" if isinstance(part, Expression) else part for part in place.parts
    )
    if "$$" not in text:
        assert written == text
    else:
        assert len(written) <= len(text) <= len(written) + text.count("$$")


@given(st.lists(st.tuples(plain.map("".join), st.sampled_from(EXPRESSIONS)), max_size=5), plain)
def test_values_stand_where_their_expressions_stood(
    pairs: list[tuple[str, str]], rest: list[str]
) -> None:
    end = "".join(rest)
    text = "".join(f"{before}${{{expression}}}" for before, expression in pairs) + end
    made = template({"data": ["x", {"y": text}]})
    if not pairs:
        assert made is None
        return
    assert made is not None
    values = {expression: f"<{index}>" for index, expression in enumerate(EXPRESSIONS)}
    filled = made.filled({"data": ["x", {"y": text}]}, values)
    wanted = "".join(before + values[expression] for before, expression in pairs) + end
    assert filled == {"data": ["x", {"y": wanted}]}


@given(
    st.lists(st.tuples(plain.map("".join), st.sampled_from(EXPRESSIONS)), min_size=1, max_size=5)
)
def test_every_expression_can_be_escaped(pairs: list[tuple[str, str]]) -> None:
    text = "".join(f"{before}$${{{expression}}}" for before, expression in pairs)
    made = template({"data": text})
    assert made is not None
    assert made.sources == ()
    wanted = "".join(f"{before}${{{expression}}}" for before, expression in pairs)
    assert made.filled({"data": text}, {}) == {"data": wanted}
