from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import anabranch
from anabranch import Scenario, ScenarioError, UserError, toml_text
from anabranch.scenario import MAX_FILE_BYTES, Value


def built() -> Scenario:
    return (
        Scenario("Two hosts", duration="2 s", seed=3)
        .link("bottleneck", between=("S", "R"), rate="10 Mbit/s", delay="20 ms",
              queue={"kind": "drop-tail", "limit": "100 packets"})
        .flow("main", source="S", target="R", cc="cubic", stack="rfc")
    )  # fmt: skip


def test_built_from_code_is_a_file_anybody_could_have_written() -> None:
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


def test_builders_on_a_file_are_sets(scenario_file: Path) -> None:
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


@pytest.mark.engine
def test_two_changes_of_one_scenario_are_two_runs() -> None:
    base = built()
    digests = {base.run().digest, *(base.set("flow.main.cc", cc).run().digest for cc in ("reno", "vegas"))}
    assert len(digests) == 3


def test_what_was_given_may_change_later() -> None:
    impair: list[Value] = [{"kind": "bernoulli-loss", "rate": 0.1}]
    document: dict[str, Value] = {"duration": "1 s", "link": {"a": {"between": ["S", "R"], "impair": impair}}}
    scenario = Scenario.from_dict(document)
    before = scenario.text
    impair.clear()
    assert scenario.at("1 s", {}).text.startswith(before.strip())


def test_nothing_of_a_scenario_can_be_assigned() -> None:
    scenario = built()
    with pytest.raises(AttributeError, match="a Scenario does not change: 'untrusted'"):
        scenario.untrusted = True  # type: ignore[misc]
    with pytest.raises(AttributeError, match="a Scenario does not change"):
        scenario.seed = 3
    with pytest.raises(AttributeError, match="a Scenario does not change"):
        del scenario._text


def test_a_bad_value_leaves_the_scenario_as_it_was() -> None:
    scenario = built()
    for value in (None, object(), b"x", {"a": {1, 2}}):
        with pytest.raises(UserError, match="cannot stand in a scenario"):
            scenario.set("flow.main.cc", value)  # type: ignore[arg-type]
    assert scenario == built()
    assert scenario.resolve()["flows"] == ["main"]


def test_equal_scenarios_are_equal_and_hash_alike(scenario_file: Path) -> None:
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


def test_a_dictionary_is_the_file_it_would_be_read_from(scenario_file: Path) -> None:
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
        # On this path the window never has to give way.
        assert (result.table(name).height > 0) == (name != "window_events")
    with pytest.raises(UserError, match='there is no table "sample"\n  did you mean "samples"'):
        result.table("sample")


def test_same_scenario_and_seed_same_digest(scenario_file: Path) -> None:
    scenario = Scenario.from_file(scenario_file).set("link.bottleneck.forward.queue.reorder.interval", 15)
    assert scenario.run(seed=1).digest == scenario.run(seed=1).digest
    assert scenario.run(digest=False).digest is None


@pytest.mark.engine
def test_the_fast_path_changes_nothing(scenario_file: Path) -> None:
    scenario = Scenario.from_file(scenario_file)
    assert scenario.run().digest == scenario.run(fast_path=False).digest


@pytest.mark.engine
def test_built_from_code_and_from_its_text_are_one() -> None:
    scenario = built()
    assert scenario.run().digest == Scenario.from_text(scenario.text).run().digest


def test_a_mistake_is_a_scenario_error() -> None:
    with pytest.raises(ScenarioError) as caught:
        Scenario.from_text('titel = "x"\n', file="s.toml").run()
    assert caught.value.file == "s.toml"
    assert caught.value.line == 1
    assert issubclass(ScenarioError, ValueError)


def test_files_that_are_none(tmp_path: Path) -> None:
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
