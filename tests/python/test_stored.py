"""The reader of stored JSON: every value has its type, or the file is refused with the location."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch import Scenario, SweepResult, UserError, _engine
from anabranch.compare.inputs import read_summary
from anabranch.files import stored
from anabranch.files.output import read_manifest
from anabranch.files.stored import Range, StoredKind, WrongShapeError
from anabranch.study import robustness
from anabranch.sweep import segments
from anabranch.sweep.segments import SUFFIX, _pack
from anabranch.validate import keep
from anabranch.validate.measure import METRICS

from .command import Call
from .kept import kept_points

TEXT = """\
duration = "0.3 s"
link.a = { between = ["S", "R"], rate = "10 Mbit/s", delay = "5 ms" }
flow.main = { from = "S", to = "R" }
sweep = { "flow.main.cc" = ["reno", "cubic"] }
"""


class Small(TypedDict):
    """A shape with every kind of type."""

    format: Literal[1]
    name: str
    count: Annotated[int, Range(0, 9)]
    share: float | None
    flags: list[bool]
    pairs: list[tuple[str, int]]
    tables: dict[str, dict[str, float]]
    rest: dict[str, Any]


GOOD: dict[str, Any] = {
    "format": 1,
    "name": "Zürich",
    "count": 3,
    "share": None,
    "flags": [True],
    "pairs": [["a", 1]],
    "tables": {"x": {"y": 1}},
    "rest": {"anything": [1, None, {"deep": "text"}]},
}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"format": 2}, "format: expected 1, found 2"),
        ({"format": True}, "format: expected 1, found true"),
        ({"name": None}, "name: expected a text, found null"),
        ({"name": "\ud800"}, "name: half a character in a text"),
        ({"count": 3.0}, "count: expected a whole number, found 3.0"),
        ({"count": True}, "count: expected a whole number, found true"),
        ({"count": 10}, "count: expected 0 to 9, found 10"),
        ({"share": "1"}, 'share: expected a number, found "1"'),
        ({"share": [1]}, "share: expected a number, found a list"),
        ({"flags": {}}, "flags: expected a list, found an empty table"),
        ({"flags": [True, 1]}, r"flags\[1\]: expected true or false, found 1"),
        ({"pairs": [["a", 1, 2]]}, r"pairs\[0\]: expected a list of 2 values, found a list"),
        ({"pairs": [[1, 1]]}, r"pairs\[0\]\[0\]: expected a text, found 1"),
        ({"tables": {"x": [1]}}, "tables.x: expected a table, found a list"),
        ({"tables": {"x": {"y": "z"}}}, 'tables.x.y: expected a number, found "z"'),
        ({"rest": {"a": [{"b": "\udfff"}]}}, r"rest.a\[0\].b: half a character"),
        ({"rest": []}, "rest: expected a table, found an empty list"),
    ],
)
def test_a_wrong_value_has_a_location(tmp_path: Path, change: dict[str, Any], says: str) -> None:
    file, kind = tmp_path / "x.json", StoredKind(Small, "a small file", "make it again")
    file.write_text(json.dumps(GOOD))
    assert kind.read(file) == GOOD
    file.write_text(json.dumps(GOOD | change, indent=1))
    with pytest.raises(UserError, match=says) as wrong:
        kind.read(file)
    lines = str(wrong.value).splitlines()
    assert lines[0].startswith(f"{file}:{wrong.value.line}:{wrong.value.column}: ")
    assert lines[0].endswith("; a small file was expected")
    assert lines[-1] == "  make it again"


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "not JSON"),
        (b"[1", "not JSON"),
        (b"\xff\xfe\x00", "not JSON"),
        (b"[" * 100_000, "nested too deeply"),
        (b"9" * 5000, "x.json"),
        (b'{"share": NaN}', "NaN is no number"),
        (b'{"share": -Infinity}', "-Infinity is no number"),
        (b'{"share": 1e999}', "share: a number beyond all bounds"),
        (b'{"count": 1' + b"0" * 400 + b"}", "count: a number beyond all bounds"),
        (b'{"rest": {"a": 1e999}}', "rest.a: a number beyond all bounds"),
        (b'{"unknown": 1e999}', "unknown: a number beyond all bounds"),
    ],
)
def test_values_outside_json_are_refused(content: bytes, says: str) -> None:
    with pytest.raises(UserError, match=says):
        StoredKind(Small, "a small file", is_partial=True).parse("x.json", content)


@pytest.mark.parametrize("name", GOOD)
def test_a_missing_key_is_named(name: str) -> None:
    content = {key: value for key, value in GOOD.items() if key != name}
    with pytest.raises(UserError, match=f'lacks "{name}"'):
        StoredKind(Small, "a small file").parse("x.json", json.dumps(content).encode())
    assert StoredKind(Small, "a small file", is_partial=True).parse("x.json", json.dumps(content).encode()) == content
    with pytest.raises(UserError, match=f'did you mean "{name}x"'):
        StoredKind(Small, "a small file").parse("x.json", json.dumps({**content, f"{name}x": 1}).encode())


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(JSON)
def test_any_document_is_read_or_refused(value: Any) -> None:
    with contextlib.suppress(WrongShapeError):
        stored.check(value, Small)
        assert set(GOOD) <= set(value)


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of the values of a document; of each list only the first element."""
    # Elements of a list have the same type.
    inner = value.items() if isinstance(value, dict) else enumerate(value[:1]) if isinstance(value, list) else ()
    yield path
    for key, one in inner:
        yield from leaves(one, (*path, key))


def changed(value: Any, path: tuple[Any, ...], other: Any) -> Any:
    """A document with another value at a path."""
    if not path:
        return other
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = changed(value[path[0]], path[1:], other)
    return copy


WRONG: tuple[Any, ...] = (None, True, -1, 1.5, "x", [], {}, [[]], {"a": 1}, "\ud800", 10**30)


@pytest.fixture(params=[pytest.param(2, id="half"), pytest.param(1, id="all", marks=pytest.mark.long)])
def stride(request: pytest.FixtureRequest) -> int:
    """Each place gets every wrong value, or every second one, the first and the second in turn."""
    stride: int = request.param
    return stride


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with two shards and the whole sweep."""
    folder = tmp_path_factory.mktemp("swept")
    (folder / "s.toml").write_text(TEXT)
    scenario = Scenario.from_file(folder / "s.toml")
    for part in (1, 2):
        scenario.sweep(shard=(part, 2), out=folder / f"part-{part}")
    scenario.sweep(out=folder / "whole")
    return folder


def is_read_or_refused(read: Callable[[], object], *places: str) -> None:
    said = ""
    try:
        read()
    except UserError as error:
        said = str(error)
    assert not said or any(place in said for place in places), said


def test_a_shard_with_any_wrong_value_is_read_or_refused(swept: Path) -> None:
    file = swept / "part-1" / "shard.json"
    before = file.read_bytes()
    content = json.loads(before)
    try:
        for path in leaves(content):
            if path[:1] == ("resolved",) and len(path) > 1:
                continue
            for other in WRONG:
                file.write_text(json.dumps(changed(content, path, other)))
                is_read_or_refused(
                    lambda: SweepResult.merge([swept / "part-1", swept / "part-2"]), "shard", "part-1", "part-2"
                )
    finally:
        file.write_bytes(before)
    SweepResult.merge([swept / "part-1", swept / "part-2"])


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"axes": {"flow.main.cc": "reno"}}, "axes.flow.main.cc: expected a list"),
        ({"axes": {"flow.main.cc": []}}, "gives no value for"),
        ({"axes": {"": [1]}}, "shard.json"),
        ({"sets": [1]}, r"sets\[0\]: expected a text, found 1"),
        ({"sets": {}}, "sets: expected a list"),
        ({"repeat": 0}, "repeat: expected 1 to"),
        ({"repeat": 10**9}, "repeat: expected 1 to"),
        ({"repeat": True}, "repeat: expected a whole number, found true"),
        ({"first_seed": -1}, "first_seed: expected 0 to"),
        ({"part": 3}, "there is no part 3 of 2"),
        ({"part": 0}, "part: expected 1 to"),
        ({"digest": 1}, "digest: expected true or false, found 1"),
        ({"resolved": []}, "resolved: expected a table"),
        ({"space": {"ranges": [], "design": "lhs", "points": 3}}, "space.ranges: expected a table"),
        ({"space": {"ranges": {"link.a.rate": 1}, "design": "lhs", "points": 3}}, "expected a text, found 1"),
        ({"space": {"ranges": {"link.a.rate": "1..2 Mbit/s"}, "design": "x", "points": 3}}, "no such design"),
        ({"space": {"ranges": {"link.a.rate": "1..2 Mbit/s"}, "design": "lhs"}}, 'lacks "points"'),
    ],
)
def test_a_malformed_shard_is_one_message(
    anabranch: Call, swept: Path, tmp_path: Path, change: dict[str, Any], says: str
) -> None:
    file = swept / "part-1" / "shard.json"
    before = file.read_bytes()
    try:
        file.write_text(json.dumps(json.loads(before) | change))
        done = anabranch("sweep", "merge", swept / "part-1", swept / "part-2", "--out", tmp_path / "out")
    finally:
        file.write_bytes(before)
    assert (done.status, done.out) == (2, "")
    assert says.replace("\\", "") in done.err
    assert "shard.json" in done.err
    assert not (tmp_path / "out").exists()


def rewrite(directory: Path, change: Callable[[Any], Any]) -> None:
    """Replace every point of a directory by a changed one, with valid checksums."""
    points = kept_points(directory)
    (segment,) = (directory / "points").glob(f"*{SUFFIX}")
    lines = [(key, json.dumps(change(json.loads(line))).encode()) for key, line in points.items()]
    segment.write_bytes(segments.MAGIC + _pack(lines))


def summary_of(summary: Any) -> Callable[[Any], Any]:
    return lambda line: {**line, "summary": summary(line["summary"]) if callable(summary) else summary}


@pytest.mark.parametrize(
    "change",
    [
        summary_of({}),
        summary_of([]),
        summary_of(None),
        summary_of({"flows": {}}),
        summary_of(lambda s: {key: value for key, value in s.items() if key != "digest"}),
        summary_of(lambda s: s | {"flows": {"main": {}}}),
        summary_of(lambda s: s | {"flows": {"main": s["flows"]["main"] | {"goodput_mbit_s": "1"}}}),
        summary_of(lambda s: s | {"links": []}),
        summary_of(lambda s: s | {"digest": 5}),
        lambda line: {**line, "depends": []},
        lambda line: {"summary": line["summary"]},
        lambda _: [],
    ],
)
def test_a_malformed_summary_with_a_valid_checksum_is_refused(
    anabranch: Call, tmp_path: Path, change: Callable[[Any], Any]
) -> None:
    (tmp_path / "s.toml").write_text(TEXT)
    out = tmp_path / "part"
    call = ("sweep", tmp_path / "s.toml", "--shard", "1/1", "--out", out)
    assert anabranch(*call).status == 0
    whole = SweepResult.merge([out]).frame
    rewrite(out, change)
    done = anabranch("sweep", "merge", out, "--json")
    assert (done.status, done.out) == (2, "")
    assert "lacks 2 of its runs" in done.err
    assert "is not as it was written" in done.err
    # The shard itself repeats them, with a message.
    done = anabranch(*call)
    assert done.status == 0
    assert "is not as it was written" in done.err
    assert "made again" in done.err
    assert SweepResult.merge([out]).frame.equals(whole)


def test_a_sweep_with_any_wrong_value_is_read_or_refused(swept: Path, stride: int) -> None:
    file = swept / "whole" / "sweep.json"
    before = file.read_bytes()
    content = json.loads(before)
    try:
        for number, path in enumerate(leaves(content)):
            values = WRONG if path[:1] != ("resolved_scenario",) else WRONG[:3]
            for other in values[number % stride :: stride]:
                file.write_text(json.dumps(changed(content, path, other)))
                is_read_or_refused(lambda: SweepResult.read(swept / "whole"), "sweep.json", "runs.parquet")
    finally:
        file.write_bytes(before)


def test_a_summary_with_any_wrong_value_is_read_or_refused(anabranch: Call, tmp_path: Path, stride: int) -> None:
    (tmp_path / "s.toml").write_text(TEXT)
    done = anabranch("run", tmp_path / "s.toml", "--json")
    content, file = json.loads(done.out), tmp_path / "x.json"
    (tmp_path / "y.json").write_text(done.out)
    for number, path in enumerate(leaves(content)):
        values = WRONG if path[:1] != ("resolved_scenario",) else WRONG[:2]
        for other in values[number % stride :: stride]:
            file.write_text(json.dumps(changed(content, path, other)))
            is_read_or_refused(lambda: read_summary(file), "x.json")
    for path in (("flows", "main", "goodput_mbit_s"), ("links", "a", "forward"), ("fairness",), ("seed",)):
        file.write_text(json.dumps(changed(content, path, "x")))
        done = anabranch("compare", file, tmp_path / "y.json")
        assert (done.status, "x.json" in done.err) == (2, True), done.err


def test_stored_files_with_any_wrong_value_are_read_or_refused(tmp_path: Path) -> None:
    values = {metric.name: {"all": 1.0} for metric in METRICS}
    live = {"reasons": ["late"], "machine": {"cpus": 2}, "figures": {"values": values, "windows": {"a": {"3": 1.0}}}}
    robust = {"claims": {"c": 0.5}, "points": [{"holds": {"c": True}}], "computed_from": "x"}
    manifest = {"kind": "run", "files": ["a"], "complete": True}
    file = tmp_path / "anabranch.json"
    for content, read in (
        (live, lambda: keep.read(file)),
        (robust, lambda: robustness._KEPT.read(file)),
        (manifest, lambda: read_manifest(tmp_path)),
    ):
        file.write_text(json.dumps(content))
        assert read() is not None
        for path in leaves(content):
            for other in WRONG:
                file.write_text(json.dumps(changed(content, path, other)))
                is_read_or_refused(read, "anabranch.json")


def test_checking_the_shape_of_a_summary_costs_less_than_reading(anabranch: Call, tmp_path: Path) -> None:
    """Resuming a sweep may read a million points."""
    import timeit
    from time import process_time

    from anabranch.result.summary import Summary

    (tmp_path / "s.toml").write_text(TEXT)
    content = anabranch("run", tmp_path / "s.toml", "--json").out
    value = json.loads(content)
    # Other programs run at the same time.
    read = min(timeit.repeat(lambda: json.loads(content), number=50, repeat=5, timer=process_time))
    checked = min(timeit.repeat(lambda: stored.check(value, Summary), number=50, repeat=5, timer=process_time))
    assert checked < 3 * read


SENDER = {"socket": 5, "start": 0, "end": 1, "seconds": 1, "bytes": 10**6, "bits_per_second": 8e6, "retransmits": 1}
IPERF3: dict[str, Any] = {
    "start": {
        "connected": [{"socket": 5, "local_host": "a", "local_port": 1, "remote_host": "b", "remote_port": 2}],
        "test_start": {"protocol": "TCP", "num_streams": 1, "duration": 1, "reverse": 0},
    },
    "intervals": [{"streams": [{**SENDER, "snd_cwnd": 20_000, "rtt": 20_000, "omitted": False}], "sum": SENDER}],
    "end": {"streams": [{"sender": SENDER, "receiver": SENDER}], "sum_sent": SENDER, "sum_received": SENDER},
}
FLENT: dict[str, Any] = {
    "version": 4,
    "metadata": {"NAME": "rrul", "TITLE": "t", "LENGTH": 2, "STEP_SIZE": 0.2, "SERIES_META": {}},
    "x_values": [0.0, 0.2],
    "results": {"TCP upload": [1.0, 2.0], "Ping (ms) ICMP": [10.0, None]},
    "raw_values": {"TCP upload": [{"t": 1.0, "val": 2.0}]},
}
TOPOLOGY: dict[str, Any] = {
    "graph": {"name": "x", "demands": {"0": {"1": 2.0}}},
    "nodes": [{"id": 0, "name": "a", "pos": [1.0, 2.0]}, {"id": 1, "name": "b", "pos": [3.0, 4.0]}],
    "edges": [{"source": 0, "target": 1, "dist": 100.0}],
}


@pytest.mark.parametrize(
    ("name", "content", "targets"),
    [
        ("iperf3.json", IPERF3, ("csv", "summary")),
        ("x.flent", FLENT, ("csv", "summary")),
        ("topology.json", TOPOLOGY, ("scenario",)),
    ],
)
def test_results_of_other_programs_with_any_wrong_value_are_read_or_refused(
    tmp_path: Path, name: str, content: dict[str, Any], targets: tuple[str, ...], stride: int
) -> None:
    from anabranch.convert import Options, convert

    file = tmp_path / name
    for number, path in enumerate(leaves(content)):
        for other in WRONG[number % stride :: stride]:
            file.write_text(json.dumps(changed(content, path, other)))
            for target in targets:
                is_read_or_refused(partial(convert, file, Options(None, target)), name, "topology")


def test_a_summary_is_converted_or_refused(anabranch: Call, tmp_path: Path, stride: int) -> None:
    from anabranch.convert import Options, convert

    (tmp_path / "s.toml").write_text(TEXT)
    content, file = json.loads(anabranch("run", tmp_path / "s.toml", "--json").out), tmp_path / "summary.json"
    places = leaves({"resolved_scenario": {"flow": content["resolved_scenario"]["flow"]}, "duration_s": 1})
    for number, path in enumerate(places):
        for other in WRONG[:8][number % stride :: stride]:
            file.write_text(json.dumps(changed(content, path, other)))
            for target in ("qlog", "scenario", "summary"):
                with contextlib.suppress(UserError, _engine.ScenarioError):
                    convert(file, Options(None, target))


def test_a_status_with_any_wrong_value_is_read_or_refused(tmp_path: Path) -> None:
    from anabranch.gateway import config, lines

    (tmp_path / "gateway.toml").write_text(GATEWAY)
    path = {"state": "active", "rtt_ms": 20.0, "rate_mbit_s": 10.0, "loss": 0.01}
    content = {"peers": {"server": {"state": "up", "paths": {"fibre": path}}}}
    file, configured = tmp_path / "status.json", config.read(tmp_path / "gateway.toml")
    for place in leaves(content):
        for other in WRONG:
            file.write_text(json.dumps(changed(content, place, other)))
            is_read_or_refused(partial(lines.gather, configured, ["lte=1mbit,1ms"], file), "status.json", "fibre")


GATEWAY = """\
[gateway]
addresses = ["10.9.0.1/24"]
private_key_file = "key"
[peer.server]
public_key = "CQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQk="
allowed = ["10.9.0.2/32"]
endpoints = ["192.0.2.1:51900"]
[path.fibre]
interface = "eth0"
[path.lte]
interface = "eth1"
"""


def test_stored_runs_of_a_study_with_any_wrong_value_are_repeated(tmp_path: Path) -> None:
    from anabranch.study.keep import Kept, _OutcomeFile
    from anabranch.sweep.points import Points

    good = {"figures": {"a": 1.0}, "digest": None, "demands": {"m": "inf"}, "tables": {}, "depends": [["a", "b"]]}
    stored.check(good, _OutcomeFile)
    key = bytes(32)
    for k, (place, other) in enumerate((place, other) for place in leaves(good) for other in WRONG):
        out = tmp_path / str(k)
        points = Points(out, tmp_path)
        points.write([(key, json.dumps(changed(good, place, other)), [])])
        points.close()
        remarks: list[str] = []
        kept = Kept(out, tmp_path, remarks.append)
        assert (kept.outcome(key) is None) == bool(remarks)
    points = Points(tmp_path / "table", tmp_path)
    points.write([(key, json.dumps({**good, "tables": {"samples": "bm8="}}), [])])
    points.close()
    remarks = []
    assert Kept(tmp_path / "table", tmp_path, remarks.append).outcome(key) is None
    assert "a table is not whole" in remarks[0]
