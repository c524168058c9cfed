"""Reference vectors: the stored ones are those of this version; a trace is compared by its reductions."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from anabranch.errors import UserError
from anabranch.vectors import compared, folder, made, trace
from anabranch.vectors.scenarios import SMSS, VECTORS, named
from anabranch.vectors.trace import read

from .command import Call

STORED = Path(__file__).resolve().parents[2] / "validation/data/vectors"


def test_the_stored_vectors_are_those_of_this_version() -> None:
    """After review of the difference, `anabranch vectors --no-qlog --out validation/data/vectors` renews them."""
    assert folder.differences(STORED, [], progress=lambda _: None) == []


def test_every_control_and_scenario_is_stored() -> None:
    expected = {
        f"{control}/{v.name}.{kind}" for control in folder.controls() for v in VECTORS for kind in ("csv", "qlog")
    }
    assert set(folder.stored(STORED)) == expected


def rows(control: str, scenario: str) -> list[made.Row]:
    vector = named(scenario)
    assert vector is not None
    return made.rows(vector, control)


def test_scenarios_are_about_their_behaviour() -> None:
    """Each scenario has its event with CUBIC, and no other."""
    events = {v.name: [row.event for row in rows("cubic", v.name) if row.event] for v in VECTORS}
    assert events["start-up"] == events["idle-restart"] == events["app-limited"] == events["rtt-change"] == []
    assert events["one-loss"] == ["recovery-entered", "recovery-left"]
    assert events["spurious-rto"] == ["rto", "undo"]
    assert events["reordering"] == ["recovery-entered", "undo"]
    assert events["rto"][:2] == ["rto", "rto"]
    assert set(events["ecn"]) == {"ecn"}
    assert "recovery-entered" in events["overshoot"]
    assert "recovery-entered" in events["capacity-change"]


def test_one_loss_reduces_the_window_by_the_controls_factor() -> None:
    for control, factor in (("reno", 0.5), ("cubic", 0.7), ("bic", 0.8)):
        found = rows(control, "one-loss")
        before = max(row.cwnd for row in found if row.time_s < 0.8)
        after = next(row.cwnd for row in found if row.event == "recovery-left")
        assert after / before == pytest.approx(factor, abs=0.02), control


def test_the_guide_has_the_pairs_that_vectors_distinguish() -> None:
    """`python validation/vector_power.py --write` renews it."""
    root = STORED.parents[2]
    words = [sys.executable, str(root / "validation/vector_power.py")]
    done = subprocess.run(words, capture_output=True, text=True, check=True)  # noqa: S603
    assert done.stdout in (root / "docs/guides/vectors.md").read_text(encoding="utf-8")


def test_written_vectors_are_checked(anabranch: Call, tmp_path: Path) -> None:
    out = tmp_path / "v"
    done = anabranch("vectors", "reno", "--out", out)
    assert (done.status, done.out) == (0, f"{len(VECTORS)} vectors of 1 control in {out}\n")
    done = anabranch("vectors", "--check", out)
    assert (done.status, done.out) == (0, "every vector is the one that this version makes\n")
    file = out / "reno/one-loss.csv"
    file.write_text(file.read_text().replace("recovery-left", "recovery-lost"))
    (out / "reno/rto.csv").unlink()
    manifest = out / folder.MANIFEST
    document = json.loads(manifest.read_text())
    document["sha256"]["reno/ecn.csv"] = "0" * 64
    manifest.write_text(json.dumps(document))
    done = anabranch("vectors", "--check", out, "--json")
    assert done.status == 1
    assert json.loads(done.out)["differences"] == [
        "reno/one-loss.csv: the file is not that of the manifest",
        "reno/rto.csv: No such file or directory",
        "reno/ecn.csv: this version makes another one",
        "reno/ecn.csv: the file is not that of the manifest",
    ]


@pytest.mark.parametrize("suffix", ["csv", "qlog"])
def test_a_vector_is_equal_to_itself(anabranch: Call, tmp_path: Path, suffix: str) -> None:
    for scenario in ("one-loss", "rto", "ecn"):
        found = rows("cubic", scenario)
        file = tmp_path / f"{scenario}.{suffix}"
        file.write_bytes(made.to_csv(found) if suffix == "csv" else made.to_qlog(found, ""))
        done = anabranch("vectors", "cubic", "--compare", file, "--scenario", scenario)
        assert done.status == 0, done.out
        assert "differs" not in done.out


def test_another_control_is_told_apart(anabranch: Call, tmp_path: Path) -> None:
    """The wrong system: Reno as CUBIC, in each scenario with a reduction."""
    for scenario in ("one-loss", "overshoot", "ecn"):
        file = tmp_path / "reno.csv"
        file.write_bytes(made.to_csv(rows("reno", scenario)))
        done = anabranch("vectors", "cubic", "--compare", file, "--scenario", scenario)
        assert done.status == 1, scenario
        assert "differs" in done.out


def test_a_trace_in_other_units_and_segments_is_the_same(anabranch: Call, tmp_path: Path) -> None:
    """Segments of 1,200 bytes, a clock that starts elsewhere, milliseconds."""
    found = [row for row in rows("cubic", "one-loss") if not row.event]
    lines = [f"{5000 + row.time_s * 1000:.3f},x,{row.cwnd / SMSS * 1200:.0f}" for row in found]
    file = tmp_path / "quinn.csv"
    file.write_text("\n".join(["time_ms,more,cwnd_bytes", *lines]))
    done = anabranch("vectors", "cubic", "--compare", file, "--scenario", "one-loss", "--mss", 1200)
    assert done.status == 0, done.out
    assert anabranch("vectors", "cubic", "--compare", file, "--scenario", "one-loss").status == 1


QLOGS = {
    "draft-03": {
        "qlog_version": "0.3",
        "traces": [
            {
                "common_fields": {"time_format": "relative"},
                "events": [
                    {"time": 0, "name": "recovery:metrics_updated", "data": {"congestion_window": 14480}},
                    {"time": 40, "name": "transport:packet_sent", "data": {}},
                    {"time": 80.5, "name": "recovery:metrics_updated", "data": {"congestion_window": 28960}},
                ],
            }
        ],
    },
    "draft-01": {
        "traces": [
            {
                "configuration": {"time_units": "us"},
                "events": [
                    ["1000", "recovery", "metrics_updated", {"cwnd": 14480}],
                    ["81500", "recovery", "metrics_updated", {"cwnd": 28960}],
                ],
            }
        ]
    },
}


@pytest.mark.parametrize("version", QLOGS)
def test_versions_of_qlog(tmp_path: Path, version: str) -> None:
    file = tmp_path / "a.qlog"
    file.write_text(json.dumps(QLOGS[version]))
    found = read(file)
    assert found.times == pytest.approx((0, 0.0805))
    assert found.windows == (14480, 28960)


def test_times_between_events(tmp_path: Path) -> None:
    records = [
        {"qlog_format": "JSON-SEQ", "trace": {"common_fields": {"time_format": "relative_to_previous_event"}}},
        {"time": 10, "name": "quic:recovery_metrics_updated", "data": {"congestion_window": 10}},
        {"time": 20, "name": "quic:packet_sent", "data": {}},
        {"time": 30, "name": "quic:recovery_metrics_updated", "data": {"congestion_window": 20}},
    ]
    file = tmp_path / "a.sqlog"
    file.write_text("".join(f"\x1e{json.dumps(one)}\n" for one in records))
    assert read(file).times == pytest.approx((0, 0.05))


BAD = {
    "a.csv": {
        "": "a.csv:1: no column of time_s or time_ms or time_us",
        "time_s,window\n1,2\n": "a.csv:1: no column of cwnd_bytes or cwnd_packets\n  the columns are time_s, window",
        "time_s,time_ms,cwnd_bytes\n": "a.csv:1: more than one column of time_s",
        "time_s,cwnd_bytes\n0,10\n1,x\n": "a.csv:3: a row without numbers in time_s and cwnd_bytes\n  3 | 1,x",
        "time_s,cwnd_bytes\n0,10\n1\n": "a.csv:3: a row without numbers",
        "time_s,cwnd_bytes\n0,10\n1,-1\n": "a.csv:3: a window of -1 at 1 s; expected a finite one above 0",
        "time_s,cwnd_bytes\n0,10\n1,nan\n": "a.csv:3: a window of nan",
        "time_s,cwnd_bytes\n1,10\n0,10\n": "a.csv:3: 0 s follows 1 s; expected times in order",
        "time_s,cwnd_bytes\n0,10\n": "1 congestion windows; expected a series of them",
    },
    "a.qlog": {
        "": "0 congestion windows; expected a series of them\n  events `metrics_updated` with `congestion_window`",
        "{}\n{\n": "a.qlog:2: this is no JSON",
        "[1, 2]": "0 congestion windows",
        '{"traces": [{"events": [[], 3, {"time": "x"}]}]}': "0 congestion windows",
    },
}


@pytest.mark.parametrize(("name", "text"), [(name, text) for name, texts in BAD.items() for text in texts])
def test_bad_traces(anabranch: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str) -> None:
    monkeypatch.chdir(tmp_path)
    Path(name).write_text(text)
    done = anabranch("vectors", "reno", "--compare", name, "--scenario", "one-loss")
    assert done.status == 2
    assert BAD[name][text] in done.err, done.err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["cubik"], 'there are no vectors of "cubik"\n  did you mean "cubic"?'),
        (["reno", "--compare", "x.csv"], "--compare needs --scenario"),
        (
            ["reno", "--compare", "x.csv", "--scenario", "one-los"],
            'there is no scenario "one-los"\n  did you mean "one-loss"?',
        ),
        (["--compare", "x.csv", "--scenario", "rto"], "--compare is of one control"),
        (["reno", "--compare", "x.csv", "--scenario", "rto", "--mss", "0"], "--mss is 0; expected 1 to 65,535 bytes"),
        (["reno", "--scenario", "rto"], "--scenario rto is of --compare"),
        (["--no-qlog"], "--no-qlog is of --out"),
        (["--out", "a", "--check", "b"], "--out, --check and --compare are three tasks"),
        (["--check", "nowhere"], "nowhere/MANIFEST.json: No such file or directory"),
    ],
)
def test_bad_options(
    anabranch: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], told: str
) -> None:
    monkeypatch.chdir(tmp_path)
    done = anabranch("vectors", *words)
    assert done.status == 2
    assert told in done.err, done.err


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": 9, "sha256": {}}', '{"format": 1, "sha256": {"a": 1}}'])
def test_bad_manifests(tmp_path: Path, text: str) -> None:
    (tmp_path / folder.MANIFEST).write_text(text)
    with pytest.raises(UserError, match=r"MANIFEST\.json"):
        folder.stored(tmp_path)


def test_falls_in_quick_succession_are_one_reduction() -> None:
    series = [0.0, 1.0, 1.05, 1.1, 2.0, 3.0], [10.0, 20.0, 15.0, 10.0, 20.0, 10.0]
    found = compared.reductions(series)
    assert [(one.time_s, one.before, one.after) for one in found] == [(1.05, 20, 10), (3.0, 20, 10)]


def test_a_gradual_fall_is_one_reduction() -> None:
    """PRR by acknowledgment: each step is below 5 %."""
    falls = [20 * 0.98**step for step in range(1, 36)]
    series = [0.0, 1.0, *(1 + 0.002 * step for step in range(1, 36)), 2.0], [10.0, 20.0, *falls, 12.0]
    (found,) = compared.reductions(series)
    assert (found.time_s, found.before, found.after) == (1.002, 20, falls[-1])
    # As far down, but over seconds.
    slow = [float(at) for at in range(37)], [20.0, *falls, 12.0]
    assert compared.reductions(slow) == []


def test_windows_by_acknowledgment_are_compared_as_steps() -> None:
    """A reduction in one step and the same one spread over a round trip."""
    times = [0.04 * at for at in range(101)]
    step = [20.0] * 50 + [10.0] * 51
    fine = [0.002 * at for at in range(2001)]
    spread = [20 - 10 * min(1, max(0, (time - 1.96) / 0.04)) for time in fine]
    assert all(one.holds for one in compared.compare((times, step), (fine, spread)))


def test_a_trace_that_ends_too_early_is_refused(anabranch: Call, tmp_path: Path) -> None:
    file = tmp_path / "short.csv"
    found = rows("cubic", "one-loss")
    file.write_bytes(made.to_csv([row for row in found if row.time_s < 0.4]))
    done = anabranch("vectors", "cubic", "--compare", file, "--scenario", "one-loss")
    assert done.status == 2
    assert "the trace ends after 0.36 s; the vector has 4 s\n  record the whole scenario" in done.err


def test_a_qlog_of_changes_lasts_until_its_last_event(tmp_path: Path) -> None:
    file = tmp_path / "a.sqlog"
    records = [
        {"time": 0, "name": "recovery:metrics_updated", "data": {"congestion_window": 10}},
        {"time": 40, "name": "recovery:metrics_updated", "data": {"congestion_window": 20}},
        {"time": 900, "name": "transport:packet_sent", "data": {}},
    ]
    file.write_text("\n".join(json.dumps(one) for one in records))
    assert read(file).times == pytest.approx((0, 0.04, 0.9))
    assert read(file).windows == (10, 20, 20)


def test_an_endless_file_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace, "_LARGEST", 1 << 20)
    with pytest.raises(UserError, match="more than 1 MiB"):
        read(Path("/dev/zero"))


def test_the_list_names_every_scenario(anabranch: Call) -> None:
    done = anabranch("vectors", "--json")
    assert json.loads(done.out)["scenarios"].keys() == {vector.name for vector in VECTORS}
    assert all(vector.name in anabranch("vectors").out for vector in VECTORS)
