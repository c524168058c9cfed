from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.errors import UserError
from anabranch.text import toml_text
from anabranch.text.toml_text import Place

values = st.recursive(
    st.booleans() | st.integers(-(2**62), 2**62) | st.floats(allow_nan=False) | st.text(st.characters(codec="utf-8")),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(values)
def test_a_value_written_and_read_is_the_same(value: Any) -> None:
    assert toml_text.parse_value(toml_text.write_value(value)) == value


@given(st.dictionaries(st.text(st.characters(codec="utf-8"), min_size=1), values, max_size=5))
def test_a_document_written_and_read_is_the_same(document: dict[str, Any]) -> None:
    text = toml_text.write_document(document)
    assert toml_text.parse(text, "x") == document
    for key, value in document.items():
        assert (key,) in toml_text.locate(text) or not value


def test_text_that_is_not_toml_is_a_string() -> None:
    assert toml_text.parse_value("bbr") == "bbr"
    assert toml_text.parse_value("15 ms") == "15 ms"
    assert toml_text.parse_value("3\nb = 4") == "3\nb = 4"


def test_locations() -> None:
    text = 'a = 1\n"x.y".b = [1, {c = "q"}]\n[[claim]]\nid = "R1"\n[[claim]]\nm = { lo = "min(x)" }\n'
    places = toml_text.locate(text)
    assert places["a",] == (Place(1, 1), Place(1, 5))
    assert places["x.y", "b"][1] == Place(2, 11)
    assert places["x.y", "b", 1, "c"] == (Place(2, 16), Place(2, 20))
    assert places["claim", 0, "id"] == (Place(4, 1), Place(4, 6))
    assert places["claim", 1, "m", "lo"] == (Place(6, 7), Place(6, 12))


def test_a_broken_document_has_a_location() -> None:
    with pytest.raises(UserError) as caught:
        toml_text.parse('a = 1\nb = "x\n', "s.toml")
    assert str(caught.value) == ("s.toml:2:7: not valid TOML: illegal character '\\n'\n  2 | b = \"x\n    |       ^")


def test_none_is_refused_in_a_scenario() -> None:
    with pytest.raises(UserError, match="NoneType cannot be"):
        toml_text.write_value({"a": None})
