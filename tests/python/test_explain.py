"""``anabranch explain``: paths of scenario files, the field's synonyms, suggestions by meaning."""

from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anabranch.cli import keys, results
from anabranch.cli.explain import lookup, registry
from anabranch.cli.result_names import places
from anabranch.errors import UserError, nearest
from anabranch.result.names import names as declared
from anabranch.text.synonyms import plain, synonyms

from .command import Call

ITEMS = registry()


@pytest.mark.parametrize("synonym", sorted(synonyms()))
def test_targets_of_synonyms_exist(synonym: str) -> None:
    assert plain(synonym) == synonym
    assert lookup(synonym, ITEMS) == lookup(synonyms()[synonym], ITEMS)


def test_no_synonym_hides_a_name() -> None:
    names = {plain(name) for item in ITEMS for name in (item["name"], *(p["name"] for p in item["parameters"]))}
    names |= {plain(key.name) for key in keys.keys(keys.schema())}
    assert names.isdisjoint(synonyms())


@pytest.mark.parametrize(
    ("written", "target"),
    [
        ("taildrop", "drop-tail"),
        ("pfifo", "drop-tail"),
        ("DropTail", "drop-tail"),
        ("westwood", "westwood-plus"),
        ("netem delay", "link.delay"),
        ("rwnd", "receive_window"),
        ("cwnd", "initial_cwnd"),
        ("New_Reno", "reno"),
    ],
)
def test_alternative_names_are_explained(anabranch: Call, written: str, target: str) -> None:
    done = anabranch("explain", *written.split())
    assert (done.status, done.err) == (0, "")
    assert done.out.endswith(anabranch("explain", target).out)
    assert json.loads(anabranch("explain", written, "--json").out) == json.loads(
        anabranch("explain", target, "--json").out
    )


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("link.rate", "[link.NAME]"),
        ("link.bottleneck.rate", "[link.NAME]"),
        ("link.bottleneck.forward.rate", "`forward` or `reverse` of a link or a group"),
        ("flow.cc.c", "cubic (cc)"),
        ("flow.main.cc.cubic-plus.restart_cwnd", "cubic-plus (cc)"),
        ("link.a.impair.0.rate", "bernoulli-loss (impair)"),
        ("link.a.queue.limit", "fq-codel (queue)"),
        ("flow.main.transport.delayed_ack.timeout", "`delayed_ack` in `transport` of a flow"),
        ("flow.main.transport.reordering.fa", "rr-tcp (remedy)"),
        ("seed", "the top level of a scenario"),
    ],
)
def test_a_path_leads_to_its_key(anabranch: Call, path: str, place: str) -> None:
    told = json.loads(anabranch("explain", path, "--json").out)
    assert place in [key["place"] for key in told["places"]]
    assert path.rpartition(".")[2] in anabranch("explain", path).out


def test_a_path_may_name_a_component(anabranch: Call) -> None:
    assert anabranch("explain", "flow.cc.cubic").out == anabranch("explain", "cubic").out
    path = "link.bottleneck.forward.queue.reorder.interval"
    assert "Number of packets by which a moved packet goes back" in anabranch("explain", path).out


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("link.rat", 'error: "link.rat": `link` has no key "rat"\n  did you mean "rate"?\n'),
        ("lnk.rate", 'error: a scenario has no key "lnk"\n  did you mean "link"?\n'),
        ("flow.a.transport.min_rot", 'error: "flow.a.transport.min_rot": `transport` has no key "min_rot"\n'
                                     '  did you mean "min_rto"?\n'),
        ("link.a.bandwidth", 'error: "link.a.bandwidth": `a` has no key "bandwidth"\n  did you mean "rate"?\n'),
        ("link.a b.rate", "error: 'link.a b.rate' is no dotted TOML key\n  anabranch explain link.rate\n"),
    ],
)  # fmt: skip
def test_an_unknown_path(anabranch: Call, name: str, message: str) -> None:
    done = anabranch("explain", name)
    assert (done.status, done.out, done.err) == (2, "", message)


def test_suggestions_match_by_meaning() -> None:
    assert nearest("taildrop", ["red", "drop-tail", "tail"]) == 'did you mean "drop-tail"?'
    assert nearest("bandwidth", ["delay", "rate"]) == 'did you mean "rate"?'
    assert nearest("Drop_Tail", ["drop-tail"]) == 'did you mean "drop-tail"?'
    assert nearest("bandwidth", ["bandwith", "delay"]) == 'did you mean "bandwith"?'


@settings(deadline=None)
@given(st.text(max_size=30))
def test_any_text_is_explained_or_refused(text: str) -> None:
    with contextlib.suppress(UserError):
        assert lookup(text, ITEMS)


def test_explanations_fit_80_columns(anabranch: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("anabranch.cli.explain.registry", lambda: ITEMS)
    names = {item["name"] for item in ITEMS} | {"link.rate", "rwnd", "limit", "flow.cc", "hystart"}
    for name in sorted(names):
        lines = anabranch("explain", name).out.splitlines()
        assert [line for line in lines if len(line) > 80] == []


def test_a_parameter_lists_its_values_and_default(anabranch: Call) -> None:
    lines = anabranch("explain", "codel").out.splitlines()
    at = lines.index("  target: duration in ps, ns, us (µs), ms, s, min, h; 1 us to 100 s;")
    assert lines[at + 1] == "    default 5 ms"
    assert "  ecn: boolean; default false" in lines


def test_without_a_name_everything_is_listed(anabranch: Call) -> None:
    assert anabranch("explain").out == anabranch("list").out
    lines = anabranch("list").out.splitlines()
    assert [line for line in lines if len(line) > 80] == []
    assert {"Queues (queue)", "Stack profiles (stack)"} <= set(lines)


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("goodput", "goodput_mbit_s"),
        ("queue_delay", "p95_queue_delay_ms"),
        ("flow.main.goodput", "goodput_mbit_s"),
        ("srtt", "mean_srtt_ms"),
        ("jain", "jain_index"),
    ],
)
def test_a_short_name_of_a_result_is_explained(anabranch: Call, written: str, name: str) -> None:
    done = anabranch("explain", written)
    assert (done.status, done.err) == (0, "")
    assert done.out == f'"{written}" is `{name}` here.\n\n{anabranch("explain", name).out}'
    assert json.loads(anabranch("explain", written, "--json").out)["name"] == name


def test_every_name_of_the_reference_is_explained() -> None:
    parts = [*declared()["summary"], *declared()["tables"], *declared()["plan"]]
    names = {name for part in parts for name in part["keys"]}
    assert {"goodput_mbit_s", "cwnd_packets", "jain_index", "silent_ms"} <= names
    for name in names:
        assert results.named(name)[0] == name
        assert places()[name]


def test_a_result_has_its_location_and_meaning(anabranch: Call) -> None:
    out = anabranch("explain", "cause").out
    assert "  table packets: text\n      Trigger of the retransmission (rto, dup-thresh, rack, tlp and others)" in out
    told = json.loads(anabranch("explain", "utilization", "--json").out)
    assert told["kind"] == "key"
    assert told["result"]["places"][0]["place"] == "links.NAME.DIRECTION of the summary"
    assert "simulator only" in anabranch("explain", "hidden_losses").out
    assert "Columns: flow, direction, packet_index" in anabranch("explain", "packets").out


def test_a_word_for_several_results_names_them_and_other_meanings(anabranch: Call) -> None:
    out = anabranch("explain", "loss").out
    assert 'In results, "loss" is `dropped_packets` or\n`lost_packets`' in out
    assert "bernoulli-loss (impair)" in out
    assert "flow_completion_time_s (result)" in anabranch("explain", "completion_time").out


@pytest.mark.parametrize(
    ("name", "hint"),
    [("goodputt", "goodput"), ("jain_indx", "jain_index"), ("retransmited", "retransmitted"), ("cubik", "cubic")],
)
def test_an_unknown_word_suggests_the_nearest(anabranch: Call, name: str, hint: str) -> None:
    done = anabranch("explain", name)
    assert (done.status, done.out) == (2, "")
    assert done.err == f'error: there is nothing called "{name}"\n  did you mean "{hint}"?\n'


def test_explanations_of_results_fit_80_columns(anabranch: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("anabranch.cli.explain.registry", lambda: ITEMS)
    for name in ("goodput", "queue_delay_ms", "silent_ms", "completion_time", "packets"):
        assert [line for line in anabranch("explain", name).out.splitlines() if len(line) > 80] == []
