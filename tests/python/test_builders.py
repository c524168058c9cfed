"""The generated builders: their names, results and refusals."""

from __future__ import annotations

import importlib
import inspect
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import anabranch
from anabranch import BadValueError, Scenario, UserError, _engine, builders
from anabranch.builders import cc, impair, parts, queue, sizes, spans, workload
from anabranch.builders.tables import Tables
from anabranch.keys import schema
from anabranch.keys.component import Component

KINDS = [name for name in builders.__all__ if name not in ("delay", "parts", "service", "sizes", "spans")]


def functions() -> Iterator[tuple[str, Callable[..., Component]]]:
    for module in builders.__all__:
        for name, function in vars(importlib.import_module(f"anabranch.builders.{module}")).items():
            if inspect.isfunction(function) and name not in ("build", "named"):
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


def test_omitted_arguments_are_not_in_the_table() -> None:
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
        (lambda: sizes.fixed(size="20"), r"^sizes\.fixed\(size='20'\): \"20\" has no unit"),
        (lambda: spans.pareto(mean=5, shape=2), r"^spans\.pareto\(mean=5\): .*\n = did you mean \"5 ms\" or \"5 s\""),  # type: ignore[arg-type]
        (lambda: parts.bursts(every="1 s", factor=2, length="5"), r"^parts\.bursts\(length='5'\): \"5\" has no unit"),
        (lambda: impair.jitter(mean="5 ms", distribution="normall"), r"^impair\.jitter\(distribution='normall'\): "),
    ],
)
def test_a_builder_refuses_values_out_of_bounds(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(BadValueError, match=message) as caught:
        call()
    assert "component" not in str(caught.value)


def test_builders_and_text_give_the_same_scenario() -> None:
    built = (
        Scenario("Built", duration="1 s")
        .link("a", between=("S", "R"), rate="5 Mbit/s", delay="10 ms", queue=queue.drop_tail(limit="20 packets"),
              impair=[impair.bernoulli_loss(rate=0.01)], forward=parts.one_way(delay="12 ms"))
        .flow("main", source="S", target="R", cc=cc.cubic(beta=0.6), transport=parts.overrides(sack=False))
    )  # fmt: skip
    assert Scenario.from_text(built.text).run().digest == built.run().digest


BASE: Any = Scenario("Two hosts", duration="1 s")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: BASE.link("a", bandwidth="1 Mbit/s"), 'there is no argument "bandwidth"\n  did you mean "rate"?'),
        (lambda: BASE.link("a", loss=0.1), "did you mean impair=[impair.bernoulli_loss(…)]?"),
        (lambda: BASE.link("a", buffer="64 KiB"), 'did you mean "queue"? It takes limit'),
        (lambda: BASE.link("a", ("S", "R")), "without the name of its argument\n  for example between=('S', 'R')"),
        (lambda: BASE.flow("f", src="S", dst="R"), 'flow(src=\'S\'): there is no argument "src"\n  did you mean "s'),
        (lambda: BASE.sweep(repeats=3), 'sweep(repeats=3): there is no argument "repeats"\n  did you mean "repeat"?'),
        (lambda: BASE.run(samples=10), 'run(samples=10): there is no argument "samples"\n  did you mean "samples_ms"?'),
        (lambda: Scenario(length="1 s"), 'Scenario(length=\'1 s\'): there is no argument "length"'),  # type: ignore[call-arg]
        (lambda: impair.bernoulli_loss(0.1), "without the name of its argument\n  for example rate=0.1"),  # type: ignore[call-arg]
        (lambda: cc.cubic(betta=0.7), 'cc.cubic(betta=0.7): there is no argument "betta"\n  did you mean "beta"?'),  # type: ignore[call-arg]
    ],
)  # fmt: skip
def test_a_wrong_argument_suggests_the_nearest(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(TypeError) as refused:
        call()
    assert isinstance(refused.value, UserError)
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: BASE.link(5, between=("S", "R")), "link(5): a name was expected"),
        (lambda: BASE.flow("f", source="S", target="R", cc=cc.cubic), "in a scenario\n  call it: cc.cubic()"),
        (lambda: BASE.flow("f", source="S", target="R", cc=cc), "flow(cc=…): a module cannot be in a scenario"),
        (lambda: BASE.flow("f", source="S", target="R", stack="linuks"), "flow('f', stack='linuks'): unknown stack"),
        (lambda: BASE.set("flow.f.stack", "linuks"), "set(\"flow.f.stack\", 'linuks'): unknown stack"),
        (lambda: BASE.link("a", between=("S", "R"), path="dsll"), "link('a', path='dsll'): there is no path `dsll`"),
        (lambda: BASE.flow("f", source="S", target="R", route="a"), ' = did you mean ["a"]? expected a list'),
        (lambda: BASE.link("a", between=("S", "R"), impair=impair.duplicate()), "[{'kind': 'duplicate'}]? expected a"),
        (lambda: BASE.at("5 s", "link.a.up=false"), "at('5 s', 'link.a.up=false'): a mapping of paths"),
        (lambda: BASE.at("5 s", {"link.a.up": "no"}), "at('5 s', {'link.a.up': 'no'}): this is the text \"no\""),
        (lambda: BASE.set(5, 5), "the path 5 is not a dotted TOML key"),
        (lambda: BASE.sweep(["link.a.rate"]), "grid=['link.a.rate']: a mapping of paths"),
        (lambda: BASE.sweep({}, repeat="3"), "repeat='3': a whole number of at least 1 was expected"),
        (lambda: BASE.run(seed="a"), "seed='a': a whole number from 0"),
        (lambda: BASE.run(samples_ms="10"), "samples_ms='10': a number of milliseconds was expected"),
        (lambda: BASE.link("a", between=("S", "R")).run(captures="a"), "captures='a': a list of links was expected"),
    ],
)  # fmt: skip
def test_a_wrong_value_is_refused_at_its_call(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(UserError) as refused:
        call()
    assert message in str(refused.value)


def test_only_wrong_arguments_are_named() -> None:
    with pytest.raises(BadValueError, match=r"^link\('a', rate=5, mtu=9\): ") as refused:
        BASE.link("a", between=("S", "R"), rate=5, delay="5 ms", mtu=9)
    assert "between" not in str(refused.value)


@pytest.mark.parametrize(
    ("home", "name", "hint"),
    [(builders, "queues", 'did you mean "queue"?'), (anabranch, "Scenerio", 'did you mean "Scenario"?')],
)
def test_a_module_suggests_the_nearest_name(home: Any, name: str, hint: str) -> None:
    with pytest.raises(AttributeError) as refused:
        getattr(home, name)
    assert str(refused.value).endswith(hint)
