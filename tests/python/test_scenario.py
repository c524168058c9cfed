from __future__ import annotations

import copy
import math
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import anabranch
from anabranch import Scenario, ScenarioError, UserError
from anabranch.keys import schema
from anabranch.keys.schema import BadValueError
from anabranch.scenario import MAX_FILE_BYTES, Value
from anabranch.text import toml_text

ROOT = Path(__file__).resolve().parents[2]


def built() -> Scenario:
    return (
        Scenario("Two hosts", duration="2 s", seed=3)
        .link("bottleneck", between=("S", "R"), rate="10 Mbit/s", delay="20 ms",
              queue={"kind": "drop-tail", "limit": "100 packets"})
        .flow("main", source="S", target="R", cc="cubic", stack="rfc")
    )  # fmt: skip


def test_a_built_scenario_has_the_text_of_a_file() -> None:
    assert built().text == (
        'title = "Two hosts"\nduration = "2 s"\nseed = 3\n\n'
        '[link.bottleneck]\nbetween = ["S", "R"]\nrate = "10 Mbit/s"\ndelay = "20 ms"\n'
        'queue = { kind = "drop-tail", limit = "100 packets" }\n\n'
        '[flow.main]\nfrom = "S"\nto = "R"\nstack = "rfc"\ncc = "cubic"\n'
    )


def test_every_builder_writes_its_table() -> None:
    scenario = (
        built()
        .group("core", between=("A", "B"), members=8, rate="100 Mbit/s", control="always-on")
        .gateway("tunnel", between=("A", "B"), routes=["x", "y"], split="weighted-round-robin", restore="none")
        .host("S", processing_jitter="1 ms")
        .at("1 s", {"link.bottleneck.up": False})
    )
    document = toml_text.parse(scenario.text, "x")
    assert document["group"]["core"]["members"] == 8
    assert document["gateway"]["tunnel"]["routes"] == ["x", "y"]
    assert document["host"]["S"] == {"processing_jitter": "1 ms"}
    assert document["at"] == [{"time": "1 s", "set": {"link.bottleneck.up": False}}]


def test_builders_on_a_file_become_settings(scenario_file: Path) -> None:
    scenario = Scenario.from_file(scenario_file).flow("second", source="S", target="R")
    assert scenario.sets == ['flow.second={ from = "S", to = "R" }']
    with pytest.raises(UserError, match="belong into the scenario's file"):
        scenario.at("1 s", {})


def test_a_change_makes_a_new_scenario() -> None:
    base = built()
    before = base.text
    one, other = base.set("flow.main.cc", "reno"), base.set("flow.main.cc", "bbr")
    assert one is not other
    assert (base.sets, one.sets, other.sets) == ([], ['flow.main.cc="reno"'], ['flow.main.cc="bbr"'])
    more = base.link("second", between=("R", "T")).flow("second", source="R", target="T").host("T").at("1 s", {})
    assert base.text == before
    assert "second" in more.text


def test_two_changes_of_one_scenario_are_two_runs() -> None:
    base = built()
    digests = {base.run().digest, *(base.set("flow.main.cc", cc).run().digest for cc in ("reno", "vegas"))}
    assert len(digests) == 3


def test_later_changes_of_an_argument_have_no_effect() -> None:
    impair: list[Value] = [{"kind": "bernoulli-loss", "rate": 0.1}]
    document: dict[str, Value] = {"duration": "1 s", "link": {"a": {"between": ["S", "R"], "impair": impair}}}
    scenario = Scenario.from_dict(document)
    before = scenario.text
    impair.clear()
    assert scenario.at("1 s", {}).text.startswith(before.strip())


def test_a_scenario_is_immutable() -> None:
    scenario = built()
    with pytest.raises(AttributeError, match="a Scenario does not change: 'untrusted'"):
        scenario.untrusted = True  # type: ignore[misc]
    with pytest.raises(AttributeError, match="a Scenario does not change"):
        scenario.seed = 3
    with pytest.raises(AttributeError, match="a Scenario does not change"):
        del scenario._text


def test_a_bad_value_leaves_the_scenario_unchanged() -> None:
    scenario = built()
    for value in (None, object(), b"x", {"a": {1, 2}}):
        with pytest.raises(UserError, match="cannot be in a scenario"):
            scenario.set("flow.main.cc", value)  # type: ignore[arg-type]
    assert scenario == built()
    assert scenario.resolve()["flows"] == ["main"]


WRONG: list[tuple[str, Value, str]] = [
    ("flow.main.cc", "cubik", r"set\(\"flow\.main\.cc\", 'cubik'\): unknown congestion control `cubik`"),
    ("flow.main.cc.beta", 1.5, r"1\.5 is out of range"),
    ("flow.main.bta", 1, "unknown key `bta`"),
    ("lnk.a", 3, "did you mean `link`"),
    ("link.bottleneck.delay", "15", '"15" has no unit'),
    ("link.bottleneck.delay", 15, "expected a duration with its unit"),
    ("duration", "9e9 s", "is too large"),
    ("link.bottleneck.impair", [{"kind": "bernoulli-loss", "rate": 2}], "expected a bare number from 0 to 1"),
    ("flow.main.transport.push_bursts", True, "the switch `push_bursts` was removed"),
    ("seed", math.nan, "expected a whole number"),
    ("flow.main.count", 0, "expected a whole number from 1"),
]


@pytest.mark.parametrize(("path", "value", "message"), WRONG)
@pytest.mark.parametrize("base", [built(), Scenario()], ids=["whole", "empty"])
def test_impossible_settings_are_refused_at_the_call(base: Scenario, path: str, value: Value, message: str) -> None:
    for kind in (UserError, ScenarioError):
        # In an empty scenario the message is only about the missing table.
        with pytest.raises(kind, match=message if base == built() else None):
            base.set(path, value)
    assert base in (built(), Scenario())


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda s: s.flow("f", source="S", target="R", cc="cubik"),
            r"^flow\('f', cc='cubik'\): unknown congestion control",
        ),
        (lambda s: s.link("l", between=("S", "R"), delay="5"), r"^link\('l', delay='5'\): \"5\" has no unit"),
        (lambda s: s.at("5", {}), r"^at\('5', …\): \"5\" has no unit"),
        (
            lambda s: s.at("5 s", {"link.bottleneck.upp": False}),
            r"^at\('5 s', \{'link.bottleneck.upp': False\}\): unknown key",
        ),
        (lambda s: Scenario.from_dict({"flow": {"f": {"form": "S"}}}), "^from_dict: unknown key `form`"),
        (lambda s: Scenario.from_dict({"duratoin": "5 s"}), "did you mean `duration`"),
        (lambda s: s.set("flow..cc", "reno"), "'flow..cc' is not a dotted TOML key"),
    ],
)
def test_a_builder_refuses_impossible_values(call: Callable[[Scenario], object], message: str) -> None:
    with pytest.raises(UserError, match=message):
        call(built())


SHIPPED = sorted(
    file.relative_to(ROOT).as_posix()
    for folder in ("scenarios", "studies", "tests/python/data")
    for file in (ROOT / folder).rglob("*.toml")
    if file.name not in ("study.toml", "ruff.toml")
)


@pytest.mark.parametrize("name", SHIPPED)
def test_values_of_shipped_scenarios_are_accepted(name: str) -> None:
    document = toml_text.parse((ROOT / name).read_text("utf-8"), name)
    for parts, value in toml_text.entries(document):
        assert any(schema.fits(value, place) for place in schema.places(parts)), parts


@settings(deadline=None)
@given(
    path=st.sampled_from(["link.bottleneck.delay", "link.bottleneck.rate", "duration", "flow.main.cc.c", "seed",
                          "link.bottleneck.queue.limit", "flow.main.count", "link.bottleneck.impair.0.rate"]),
    value=st.one_of(
        st.booleans(), st.integers(-2, 2**64), st.floats(allow_nan=True),
        st.builds("{}{}{}".format, st.floats(0, 1e20), st.sampled_from(["", " "]),
                  st.sampled_from(["s", "ms", "h", "bit/s", "Tbit/s", "packets", "bdp", "KiB", "", "x"])),
    ),
)  # fmt: skip
def test_a_refused_setting_would_not_have_run(path: str, value: bool | int | float | str) -> None:
    base = built().set("link.bottleneck.impair", [{"kind": "bernoulli-loss", "rate": 0}])
    change = f"{path}={toml_text.write_value(value)}"
    try:
        base.set(path, value)
    except UserError:
        with pytest.raises(ScenarioError):
            base.with_sets(change).resolve()


def test_equal_scenarios_have_equal_hashes(scenario_file: Path) -> None:
    assert built() == built()
    assert hash(built()) == hash(built())
    assert built() != built().set("seed", 4)
    assert built() != "text"
    assert Scenario.from_file(scenario_file) != Scenario.from_file(scenario_file, untrusted=True)


def pickled(scenario: Scenario) -> Scenario:
    again: Scenario = pickle.loads(pickle.dumps(scenario))  # noqa: S301 - our own
    return again


@pytest.mark.parametrize("copied", [pickled, copy.copy, copy.deepcopy])
def test_a_scenario_survives_pickling_and_copying(scenario_file: Path, copied: Callable[[Scenario], Scenario]) -> None:
    for scenario in (built(), Scenario.from_file(scenario_file).set("seed", 2)):
        assert copied(scenario) == scenario
        assert copied(scenario).flow("f", source="S", target="R") == scenario.flow("f", source="S", target="R")


def test_a_dictionary_equals_its_file(scenario_file: Path) -> None:
    document = toml_text.parse(scenario_file.read_text(), "x")
    assert toml_text.parse(Scenario.from_dict(document).text, "x") == document


def test_numbers_of_numpy_are_numbers() -> None:
    scenario = built().set("link.bottleneck.impair", [{"kind": "bernoulli-loss", "rate": np.float64(0.01)}])
    assert scenario.sets == ['link.bottleneck.impair=[{ kind = "bernoulli-loss", rate = 0.01 }]']
    assert built().set("seed", np.int64(4)).sets == ["seed=4"]


def test_resolve_and_run(scenario_file: Path) -> None:
    scenario = Scenario.from_file(scenario_file)
    resolved = scenario.resolve()
    assert resolved["title"] == "Periodic reordering at the bottleneck"
    assert resolved["flows"] == ["main"]
    assert list(resolved["sweep"]["grid"]) == ["flow.main.cc", "link.bottleneck.forward.queue.reorder.interval"]
    result = scenario.run(seed=2, samples_ms=100, packets=True)
    assert result.summary["seed"] == 2
    assert result.flows["main"]["goodput_mbit_s"] is not None
    assert set(result.links["bottleneck"]) == {"forward", "reverse"}
    for name in ("flows", "links", "samples", "link_samples", "packets", "window_events"):
        assert isinstance(result.table(name), pl.DataFrame)
        # On this path the window is never reduced.
        assert (result.table(name).height > 0) == (name != "window_events")
    with pytest.raises(UserError, match='there is no table "sample"\n  did you mean "samples"'):
        result.table("sample")


def test_the_same_scenario_and_seed_give_the_same_digest(scenario_file: Path) -> None:
    scenario = Scenario.from_file(scenario_file).set("link.bottleneck.forward.queue.reorder.interval", 15)
    assert scenario.run(seed=1).digest == scenario.run(seed=1).digest
    assert scenario.run(digest=False).digest is None


def test_the_fast_path_changes_nothing(scenario_file: Path) -> None:
    scenario = Scenario.from_file(scenario_file)
    assert scenario.run().digest == scenario.run(fast_path=False).digest


def test_built_scenario_and_its_text_are_the_same() -> None:
    scenario = built()
    assert scenario.run().digest == Scenario.from_text(scenario.text).run().digest


def test_a_mistake_is_a_scenario_error() -> None:
    with pytest.raises(ScenarioError) as caught:
        Scenario.from_text('titel = "x"\n', file="s.toml").run()
    assert caught.value.file == "s.toml"
    assert caught.value.line == 1
    assert issubclass(ScenarioError, ValueError)


def test_files_that_are_not_scenarios(tmp_path: Path) -> None:
    (tmp_path / "reordering.toml").write_text("")
    with pytest.raises(UserError, match=r'reordring\.toml: no such file\n  did you mean "reordering\.toml"'):
        Scenario.from_file(tmp_path / "reordring.toml")
    with pytest.raises(UserError, match="is a directory"):
        Scenario.from_file(tmp_path)
    (tmp_path / "latin1.toml").write_bytes(b'title = "x"\n# \xe9t\xe9\n')
    with pytest.raises(UserError, match=r"latin1.toml:2:3: not UTF-8"):
        Scenario.from_file(tmp_path / "latin1.toml")
    (tmp_path / "huge.toml").write_bytes(b"#" * (MAX_FILE_BYTES + 1))
    with pytest.raises(UserError, match="at most 16,777,216 were expected"):
        Scenario.from_file(tmp_path / "huge.toml")


def test_public_names() -> None:
    for name in anabranch.__all__:
        assert getattr(anabranch, name) is not None
    with pytest.raises(AttributeError):
        _ = anabranch.nothing


@pytest.mark.parametrize(
    "arguments", [{"duration": 10}, {"duration": "10"}, {"seed": "x"}, {"warmup": "1 m"}, {"title": 3}]
)
def test_a_scenario_refuses_a_wrong_value_at_construction(arguments: dict[str, Any]) -> None:
    with pytest.raises(BadValueError) as refused:
        Scenario(**arguments)
    assert f"Scenario({next(iter(arguments))}=" in str(refused.value)
