"""``anabranch gateway``: passing calls to the daemon, predictions of a plan, and bad input."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from anabranch import Scenario
from anabranch.errors import UserError
from anabranch.gateway import config, daemon, lines, plan
from anabranch.text import toml_text

from .command import Call

CONFIGURATION = """\
[gateway]
addresses = ["10.9.0.2/24"]
private_key_file = "key"

[peer.server]
public_key = "CQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQk="
allowed = ["10.9.0.1/32"]
endpoints = ["gw.example.net:51900"]

[path.fibre]
interface = "eth0"

[path.lte]
interface = "wwan0"
policy = "backup"
"""
FIBRE, LTE = "fibre=8mbit/4mbit,10ms", "lte=4mbit,20ms"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "gateway.toml"
    path.write_text(CONFIGURATION)
    return path


def gathered(file: Path, *options: str) -> dict[str, lines.Line]:
    return lines.gather(config.read(file), options, None)


class TestPassThrough:
    """Commands of the daemon."""

    @staticmethod
    def start(tmp_path: Path, script: str, *arguments: str) -> subprocess.Popen[str]:
        program = tmp_path / "bin" / daemon.GATEWAY.name
        program.parent.mkdir()
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        path = f"{program.parent}{os.pathsep}{os.environ.get('PATH', '')}"
        return subprocess.Popen(  # noqa: S603 - our own program
            [sys.executable, "-m", "anabranch", "gateway", *arguments],
            env={**os.environ, "PATH": path}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    @pytest.mark.parametrize(
        "arguments",
        [
            ["status", "--json", "gateway.toml"],
            ["check", "--help"],
            ["keygen", "--version"],
            ["peer", "--", "--x", ""],
            ["reload", "plan"],
        ],
    )
    def test_arguments_and_exit_status_pass_as_they_are(self, tmp_path: Path, arguments: list[str]) -> None:
        running = self.start(tmp_path, 'for word in "$@"; do echo "<$word>"; done; exit 7', *arguments)
        out, err = running.communicate()
        assert (running.returncode, out, err) == (7, "".join(f"<{word}>\n" for word in arguments), "")

    def test_a_signal_reaches_the_daemon(self, tmp_path: Path) -> None:
        running = self.start(tmp_path, "trap 'exit 9' TERM; echo up; while :; do sleep 0.05; done", "up", "x.toml")
        assert running.stdout is not None
        assert running.stdout.readline() == "up\n"
        running.send_signal(signal.SIGTERM)
        running.communicate()
        assert running.returncode == 9

    def test_a_missing_daemon_is_one_message(
        self, anabranch: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.setenv("PATH", str(tmp_path))
        monkeypatch.setattr(daemon, "_beside", lambda name: iter([tmp_path / name]))
        done = anabranch("gateway", "up", "gateway.toml")
        assert (done.status, done.out) == (2, "")
        assert done.err.startswith("error: anabranch-gateway is not installed")
        assert "cargo build --release -p anabranch-gatewayd" in done.err

    def test_the_daemon_beside_the_package_is_found(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        program = tmp_path / daemon.GATEWAY.name
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path / "nowhere"))
        monkeypatch.setattr(daemon, "_beside", lambda _: iter([tmp_path / "other", program]))
        assert daemon.find() == str(program)


@pytest.fixture(scope="module")
def backup(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A plan with a backup path, in its JSON form."""
    file = tmp_path_factory.mktemp("plan") / "gateway.toml"
    file.write_text(CONFIGURATION)
    configured = config.read(file)
    options = plan.Options(flows=3, seconds=6, seeds=2)
    done: list[int] = []
    made = plan.make(configured, lines.gather(configured, [FIBRE, LTE], None), options, done.append)
    assert done[-1] == plan.run_count(configured, options)
    document: dict[str, Any] = json.loads(json.dumps(made.document()))
    return document


class TestPlan:
    """Predictions."""

    def test_a_backup_costs_at_most_50_mb_a_month_without_traffic(self, backup: dict[str, Any]) -> None:
        assert 0 < backup["paths"]["lte"]["idle_mb_month"] <= 50
        assert backup["paths"]["fibre"]["idle_mb_month"] > 1000

    def test_a_backup_costs_at_most_50_mb_a_month_while_the_other_end_is_absent(self, backup: dict[str, Any]) -> None:
        assert 0 < backup["paths"]["lte"]["absent_mb_month"] <= 50
        assert backup["paths"]["fibre"]["absent_mb_month"] > 1000

    @pytest.mark.parametrize("direction", lines.DIRECTIONS)
    def test_a_backup_is_unused_until_the_primary_fails(self, backup: dict[str, Any], direction: str) -> None:
        found = backup["directions"][direction]
        for table in ("one_flow", "many_flows"):
            # Probes, and copies of late packets.
            assert found[table]["together"]["shares"]["lte"]["max"] < 0.05
            assert (
                found[table]["together"]["goodput_mbit_s"]["max"] < backup["paths"]["fibre"][direction]["rate_mbit_s"]
            )
        failed = found["failover"]["fibre"]
        assert 1 < failed["during_mbit_s"]["min"] <= failed["during_mbit_s"]["max"] < 4
        assert failed["shares"]["lte"]["min"] > 0.1

    @pytest.mark.parametrize("direction", lines.DIRECTIONS)
    def test_silence_is_shorter_than_the_outage_if_another_path_works(
        self, backup: dict[str, Any], direction: str
    ) -> None:
        for failed in backup["directions"][direction]["failover"].values():
            assert 0 < failed["silent_ms"]["max"] < 2000

    def test_alone_is_the_path_without_the_gateway(self, backup: dict[str, Any]) -> None:
        alone = backup["directions"]["down"]["one_flow"]["alone"]
        assert 7 < alone["fibre"]["goodput_mbit_s"]["median"] < 8
        assert 3.3 < alone["lte"]["goodput_mbit_s"]["median"] < 4
        # At least twice the delay, with a full queue.
        assert alone["lte"]["response_ms"]["p50"]["median"] >= 40
        assert "shares" not in alone["lte"]

    def test_a_figure_is_the_median_between_its_range(self, backup: dict[str, Any]) -> None:
        for direction in backup["directions"].values():
            for figure in (
                direction["failover"]["fibre"]["silent_ms"],
                direction["one_flow"]["together"]["goodput_mbit_s"],
            ):
                assert figure["min"] <= figure["median"] <= figure["max"]

    def test_two_active_paths_carry_more_than_the_best(self, file: Path) -> None:
        file.write_text(CONFIGURATION.replace('policy = "backup"\n', ""))
        configured = config.read(file)
        options = plan.Options(flows=2, seconds=6, seeds=1)
        figures = plan.make(configured, gathered(file, FIBRE, LTE), options).figures
        together = figures[plan.Case("down", many=True)]
        alone = figures[plan.Case("down", alone="fibre", many=True)]
        assert together["goodput_mbit_s"] is not None
        assert alone["goodput_mbit_s"] is not None
        assert together["goodput_mbit_s"].median > 1.15 * alone["goodput_mbit_s"].median
        assert together["shares/lte"] is not None
        assert together["shares/lte"].median > 0.2

    def test_the_command_prints_80_columns_or_one_document(self, anabranch: Call, file: Path) -> None:
        file.write_text(CONFIGURATION + '[class.calls]\nmatch = { dscp = 46 }\nmode = "interactive"\n')
        given = ["gateway", "plan", file, "--path", FIBRE, "--path", LTE, "--seconds", 6, "--seeds", 1, "--flows", 2]
        done = anabranch(*given)
        assert (done.status, done.err) == (0, "")
        assert all(len(line) <= 80 for line in done.out.splitlines())
        assert "  class calls: interactive" in done.out
        assert "  fibre: calls" in done.out
        as_json = anabranch(*given, "--json")
        assert (as_json.status, as_json.err) == (0, "")
        assert set(json.loads(as_json.out)["directions"]) == {"up", "down"}


CLASSES = """
[class.calls]
match = { dscp = ["ef", 34] }
mode = "interactive"

[class.web]
match = { port = ["8000-8010", 443], dscp = ["ef", 10] }
mode = "bulk"

[class.backups]
match = { prefix = "192.168.7.9" }
mode = "pinned"
path = "lte"
"""


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> plan.Plan:
    file = tmp_path_factory.mktemp("classes") / "gateway.toml"
    file.write_text(CONFIGURATION.replace('policy = "backup"\n', "") + CLASSES)
    options = plan.Options(flows=2, seconds=6, seeds=1)
    return plan.make(config.read(file), gathered(file, FIBRE, LTE), options)


class TestClasses:
    """Predictions for classes."""

    @pytest.mark.parametrize("direction", lines.DIRECTIONS)
    def test_packets_have_their_simulated_class(self, file: Path, direction: str) -> None:
        file.write_text(CONFIGURATION + CLASSES)
        configured, options = config.read(file), plan.Options(seconds=6, seeds=1)
        for name in ("calls", "web", "backups", None):
            case = plan.ClassCase(direction, name, is_call=True, fails="lte")
            text = toml_text.write_document(plan.document(configured, gathered(file, FIBRE, LTE), options, case))
            gateway = Scenario.from_text(text).run().gateways["the-tunnel"]
            entered = gateway["forward" if direction == "up" else "reverse"]["class_packets"]
            assert {one for one, packets in entered.items() if packets} == ({name} if name else set())

    @pytest.mark.parametrize("direction", lines.DIRECTIONS)
    def test_an_interactive_call_survives_its_path(self, planned: plan.Plan, direction: str) -> None:
        def figures(name: str | None) -> plan.Figures:
            return planned.figures[plan.ClassCase(direction, name, is_call=True, fails="fibre")]

        silence, of_no_class = figures("calls")["silent_ms"], figures(None)["silent_ms"]
        lost = figures("calls")["lost_packets"]
        assert silence is not None
        assert of_no_class is not None
        assert lost is not None
        assert lost.max == 0
        assert silence.max < of_no_class.min

    def test_a_pinned_flow_gets_its_path(self, planned: plan.Plan) -> None:
        found = planned.document()["directions"]["down"]["classes"]["backups"]
        assert found["mode"] == "pinned"
        assert found["goodput_mbit_s"] is not None
        # The path has 4 Mbit/s.
        assert 2.5 < found["goodput_mbit_s"]["median"] < 4

    def test_without_classes_there_is_no_prediction_by_class(self, backup: dict[str, Any]) -> None:
        for found in backup["directions"].values():
            assert (found["classes"], found["no_class"]) == ({}, None)

    @pytest.mark.parametrize(
        ("more", "remark"),
        [
            ('match = { dscp = "ef", port = 22 }\nmode = "bulk"\n', "left out: the class `more`"),
            ('match = { prefix = "2001:db8::/32" }\nmode = "bulk"\n', "left out: the class `more`"),
            ('match = { port = "1-65535" }\nmode = "bulk"\n', "the class `more` takes all simulated traffic"),
        ],
    )
    def test_a_remark_names_a_class_that_is_not_compared(self, file: Path, more: str, remark: str) -> None:
        file.write_text(f"{CONFIGURATION}{CLASSES}[class.more]\n{more}")
        remarks = plan.remarks(config.read(file), gathered(file, FIBRE, LTE))
        assert any(remark in one for one in remarks)

    @pytest.mark.parametrize(
        ("old", "new", "message", "hint"),
        [
            ('"interactive"', '"interactiv"', ":19:8: unknown", "interactive"),
            ('"ef", 34', "64", ":18:19: 64 is no code point", "from 0 to 63"),
            ('mode = "interactive"', 'mod = "interactive"', ":19:1: unknown key `mod`", "mode"),
            ('path = "lte"', 'path = "lta"', ":28:8: there is no path `lta`", "lte"),
            ('path = "lte"\n', "", ":25:1: the class `backups` has no path to pin packets to", "expected `path`"),
            ('{ prefix = "192.168.7.9" }', "{}", ":26:9: the class `backups` does not select", "expected `dscp`"),
        ],
    )
    def test_a_wrong_class_names_place_and_expectation(
        self, anabranch: Call, file: Path, old: str, new: str, message: str, hint: str
    ) -> None:
        file.write_text(CONFIGURATION + CLASSES.replace(old, new))
        done = anabranch("gateway", "plan", file, "--path", FIBRE, "--path", LTE)
        assert (done.status, done.out) == (2, "")
        assert done.err.startswith(f"error: {file}{message}")
        assert hint in done.err


class TestLines:
    """Properties of a path."""

    def test_values_are_read_in_the_units_of_netem(self, file: Path) -> None:
        found = gathered(file, "fibre=100mbit/40mbit,8ms", "lte=30mbit,40ms,0.5%,8ms")
        assert found["fibre"].sides["up"]["rate"] == "40 Mbit/s"
        assert found["fibre"].sides["down"]["rate"] == "100 Mbit/s"
        lte = found["lte"].sides["up"]
        assert lines.delay_ms(lte) == pytest.approx(40, abs=0.1)
        assert [one["kind"] for one in lte["impair"]] == ["bernoulli-loss", "jitter"]
        assert lte["impair"][0]["rate"] == 0.005

    @pytest.mark.parametrize(
        ("name", "content", "shown"),
        [
            ("a.toml", 'duration = "9 s"\n[link.fibre]\nbetween = ["a", "b"]\nrate = "6 Mbit/s"\ndelay = "7 ms"\n'
             '[link.x]\nbetween = ["b", "c"]\nrate = "1 Mbit/s"\n[flow.f]\nfrom = "a"\nto = "c"\n', "6 Mbit/s, 7 ms"),
            ("a.sh", "tc qdisc add dev e root netem delay 9ms rate 5mbit\n", "5 Mbit/s, 9 ms"),
            ("a.trace", "1\n2\n3\n", "traced rate, 20 ms"),
            ("a.mahimahi", "mm-delay 12 mm-loss uplink 0.01\n", "unlimited, 12 ms, 1 % loss"),
        ],
    )  # fmt: skip
    def test_a_file_gives_its_link(self, file: Path, tmp_path: Path, name: str, content: str, shown: str) -> None:
        (tmp_path / name).write_text(content)
        found = gathered(file, f"fibre={tmp_path / name}", LTE)
        assert found["fibre"].shown("up") == shown

    def test_a_path_of_a_file_fails_with_its_link(self, file: Path, tmp_path: Path) -> None:
        link = {"between": ["a", "b"], "rate": "6 Mbit/s", "delay": "7 ms"}
        document = {"duration": "9 s", "link": {"a": link}, "flow": {"f": {"from": "a", "to": "b"}}}
        (tmp_path / "a.toml").write_text(toml_text.write_document(document))
        (tmp_path / "cap.trace").write_text("".join(f"{time}\n" for time in range(6, 3000, 6)))
        configured = config.read(file)
        options = plan.Options(seconds=6, seeds=1)
        found = gathered(file, f"fibre={tmp_path / 'a.toml'}", f"lte={tmp_path / 'cap.trace'}")
        figures = plan.make(configured, found, options).figures[plan.Case("up", fails="fibre")]
        during = figures["during_mbit_s"]
        assert during is not None
        # 2 Mbit/s of the trace.
        assert during.max < 2.1

    def test_a_status_gives_paths_without_an_option(self, file: Path, tmp_path: Path) -> None:
        paths = {
            "fibre": {"state": "active", "rtt_ms": 20, "rate_mbit_s": 50.5, "loss": 0.01},
            "lte": {"state": "standby", "rtt_ms": 60.5, "rate_mbit_s": 8, "loss": 0},
            "other": {},
        }
        status = tmp_path / "status.json"
        status.write_text(json.dumps({"peers": {"server": {"state": "up", "paths": paths}}}))
        found = lines.gather(config.read(file), ["fibre=1mbit,1ms"], status)
        assert found["fibre"].shown("up") == "1 Mbit/s, 1 ms"
        assert found["lte"].shown("down") == "8 Mbit/s, 30.25 ms"
        assert any("standby" in note for note in found["lte"].notes)


def test_a_bypass_is_no_part_of_a_plan(file: Path) -> None:
    known = config.read(file).paths
    file.write_text(CONFIGURATION + '\n[bypass.video]\ndomain = ["video.example.net"]\n')
    assert config.read(file).paths == known


BAD_CONFIGURATIONS = [
    ("[path.lte]", "[pth.lte]", ":13:1: a gateway has no `pth`", 'did you mean "path"?'),
    ('"backup"', '"bakup"', ":15:10: there is no policy 'bakup'", 'did you mean "backup"?'),
    ('policy = "backup"', 'polici = "backup"', ":15:1: a path has no `polici`", 'did you mean "policy"?'),
    ('[path.lte]\ninterface = "wwan0"\npolicy = "backup"\n', "", ":10:1: there is one path, `fibre`", "two or more"),
    ("[gateway]", "[gateway", ":1:9: not valid TOML", ""),
]
BAD_PATHS = [
    ([FIBRE], ":13:1: the properties of the path `lte` are not given", "--path lte=RATE,DELAY"),
    (["fibra=1mbit,1ms"], ':10:1: --path fibra=1mbit,1ms: there is no path "fibra"', 'did you mean "fibre"?'),
    ([FIBRE, FIBRE], '--path gives "fibre" twice', "give one of them"),
    (["fibre"], "--path fibre: NAME=RATE,DELAY", "expected RATE,DELAY"),
    (["fibre=8mbit"], "--path fibre=8mbit: the delay is missing", "expected RATE,DELAY"),
    (["fibre=8mbit,1ms,1%,1ms,1"], "it has 5 values", "expected RATE,DELAY"),
    (["fibre=1mbit/1mbit/1mbit,1ms"], "it has 3 rates", "expected RATE,DELAY"),
    (["fibre=20,1ms"], "--path fibre=20,1ms: the rate 20 has no unit", "expected RATE,DELAY"),
    (["fibre=8mbit/4,1ms"], "the rate 4 has no unit", "expected RATE,DELAY"),
    (["fibre=8mbip,1ms"], "--path fibre:1:1: '8mbip' is not a rate", ""),
    (["fibre=8mbit,1ms,lots"], "--path fibre:1:11: 'lots' is not a percentage", ""),
    (["fibre=no-such.toml"], "no-such.toml: no such file", ""),
]


class TestBadInput:
    """Each error is one message, and no run begins."""

    @pytest.mark.parametrize(("old", "new", "message", "hint"), BAD_CONFIGURATIONS)
    def test_a_configuration_names_line_and_nearest_name(
        self, anabranch: Call, file: Path, old: str, new: str, message: str, hint: str
    ) -> None:
        file.write_text(CONFIGURATION.replace(old, new))
        done = anabranch("gateway", "plan", file, "--path", FIBRE, "--path", LTE)
        assert (done.status, done.out) == (2, "")
        assert done.err.startswith(f"error: {file}{message}")
        assert hint in done.err

    @pytest.mark.parametrize(("options", "message", "hint"), BAD_PATHS)
    def test_a_path_names_the_expected_value(
        self, anabranch: Call, file: Path, options: list[str], message: str, hint: str
    ) -> None:
        done = anabranch("gateway", "plan", file, *(word for option in options for word in ("--path", option)))
        assert (done.status, done.out) == (2, "")
        assert message in done.err
        assert hint in done.err

    @pytest.mark.parametrize(
        ("option", "message"),
        [
            (("--flows", 1), "--flows 1: a whole number from 2 to 1000 was expected"),
            (("--seconds", 5), "--seconds 5: a whole number from 6 to 600 was expected"),
            (("--seeds", 0), "--seeds 0: a whole number from 1 to 100 was expected"),
            (("--cc", "cubik"), 'there is no congestion control "cubik"\n  did you mean "cubic"?'),
        ],
    )
    def test_an_option_out_of_range(
        self, anabranch: Call, file: Path, option: tuple[object, ...], message: str
    ) -> None:
        done = anabranch("gateway", "plan", file, "--path", FIBRE, "--path", LTE, *option)
        assert (done.status, done.out, done.err) == (2, "", f"error: {message}\n")

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            ("[]", "which has `peers`"),
            ('{"peers": {"server": {"paths": {"fibre": {"rtt_ms": null}}}}}', "fibre.rtt_ms is null"),
            ('{"peers": {"server": {"paths": {"fibre": {"rtt_ms": 1, "rate_mbit_s": "x"}}}}}', 'rate_mbit_s is "x"'),
            ('{"peers": {"server": {"paths": {"fibre": {"rtt_ms": 1, "rate_mbit_s": 1, "loss": 2}}}}}', "loss is 2"),
        ],
    )
    def test_a_status_names_the_wrong_key(
        self, anabranch: Call, file: Path, tmp_path: Path, content: str, message: str
    ) -> None:
        status = tmp_path / "status.json"
        status.write_text(content)
        done = anabranch("gateway", "plan", file, "--status", status)
        assert (done.status, done.out) == (2, "")
        assert message in done.err

    def test_a_disconnected_link_is_refused(self, file: Path, tmp_path: Path) -> None:
        link = {"between": ["a", "b"], "rate": "1 Mbit/s", "up": False}
        document = {"duration": "9 s", "link": {"a": link}, "flow": {"f": {"from": "a", "to": "b"}}}
        (tmp_path / "a.toml").write_text(toml_text.write_document(document))
        with pytest.raises(UserError, match="the link `a` is down"):
            gathered(file, f"fibre={tmp_path / 'a.toml'}", LTE)
