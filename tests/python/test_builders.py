"""The generated builders: what they are called, what they make, and what they refuse."""

from __future__ import annotations

import importlib
import inspect
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from anabranch import BadValueError, Scenario, _engine, builders, schema
from anabranch.builders import cc, impair, parts, queue, sizes, workload
from anabranch.builders.tables import Tables
from anabranch.component import Component

pytestmark = pytest.mark.engine

KINDS = [name for name in builders.__all__ if name not in ("delay", "parts", "service", "sizes", "spans")]


def functions() -> Iterator[tuple[str, Callable[..., Component]]]:
    for module in builders.__all__:
        for name, function in vars(importlib.import_module(f"anabranch.builders.{module}")).items():
            if inspect.isfunction(function) and name != "build":
                yield f"{module}.{name}", function


FUNCTIONS = dict(functions())


@pytest.mark.parametrize("kind", KINDS)
def test_every_component_has_a_builder(kind: str) -> None:
    registered = [entry["name"] for entry in json.loads(_engine.registry()) if entry["kind"] == kind]
    assert registered
    for name in registered:
        assert f"{kind}.{name.replace('-', '_')}" in FUNCTIONS


def required(function: Callable[..., Component]) -> list[str]:
    return [p.name for p in inspect.signature(function).parameters.values() if p.default is inspect.Parameter.empty]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_builder_documents_each_argument(name: str) -> None:
    doc = inspect.getdoc(FUNCTIONS[name]) or ""
    for argument in inspect.signature(FUNCTIONS[name]).parameters:
        assert f"\n    {argument}: " in doc


@pytest.mark.parametrize("name", [name for name, f in FUNCTIONS.items() if not required(f)])
def test_a_table_without_arguments_has_its_kind_only(name: str) -> None:
    module, _, function = name.partition(".")
    table = FUNCTIONS[name]()
    assert table == ({} if module == "parts" else {"kind": table["kind"]})
    assert module == "parts" or str(table["kind"]).replace("-", "_") == function


@pytest.mark.parametrize("table", ["link", "group", "gateway", "host", "flow"])
def test_a_method_has_every_key_of_its_table(table: str) -> None:
    definition = schema.whole()["properties"][table]["additionalProperties"]["$ref"].rsplit("/", 1)[-1]
    keys = schema.whole()["$defs"][definition]["properties"]
    arguments = {"source": "from", "target": "to", "execute": "exec", "class_": "class"}
    signature = inspect.signature(getattr(Tables, table)).parameters
    assert [arguments.get(name, name) for name in signature if name not in ("self", "name")] == sorted(
        keys, key=lambda key: key not in schema.whole()["$defs"][definition].get("required", ())
    )


def test_what_is_left_out_is_not_in_the_table() -> None:
    assert cc.cubic(beta=0.8) == {"kind": "cubic", "beta": 0.8}
    assert cc.new_reno() == {"kind": "new-reno"}
    assert workload.poisson(rate="5 Mbit/s", sizes=sizes.fixed(size="20 kB")) == {
        "kind": "poisson", "rate": "5 Mbit/s", "sizes": {"kind": "fixed", "size": "20 kB"},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: cc.cubic(beta=1.5), r"^cc\.cubic\(beta=1\.5\): 1\.5 is out of range"),
        (lambda: impair.bernoulli_loss(rate=2), r"^impair\.bernoulli_loss\(rate=2\): 2 is out of range"),
        (lambda: queue.drop_tail(limit="100"), '"100" has no unit'),
        (lambda: cc.bbr(min_rtt_window=10), "expected a duration"),  # type: ignore[arg-type]
        (lambda: parts.one_way(delay="5"), '^parts.one_way.*"5" has no unit'),
        (lambda: workload.poisson(rate="5 Mbit/s", sizes=sizes.fixed(size="20")), '"20" has no unit'),
    ],
)
def test_a_builder_refuses_what_is_out_of_bounds(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(BadValueError, match=message) as caught:
        call()
    assert "component" not in str(caught.value)


def test_a_scenario_of_builders_is_the_scenario_of_its_text() -> None:
    built = (
        Scenario("Built", duration="1 s")
        .link("a", between=("S", "R"), rate="5 Mbit/s", delay="10 ms", queue=queue.drop_tail(limit="20 packets"),
              impair=[impair.bernoulli_loss(rate=0.01)], forward=parts.one_way(delay="12 ms"))
        .flow("main", source="S", target="R", cc=cc.cubic(beta=0.6), transport=parts.overrides(sack=False))
    )  # fmt: skip
    assert Scenario.from_text(built.text).run().digest == built.run().digest
