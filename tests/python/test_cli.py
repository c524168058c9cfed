"""The commands from a user's view: output, messages, exit status."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from anabranch import _engine
from anabranch.cli import bench, command_cost
from anabranch.cli.app import app
from anabranch.cli.command import Group
from anabranch.cli.completion import commands
from anabranch.cli.sweep import parse_grid
from anabranch.errors import RunFailedError

from .command import Call

ROOT = Path(__file__).parents[2]


def test_help(anabranch: Call) -> None:
    done = anabranch("--help")
    assert done.status == 0
    assert done.out == (
        "Usage: anabranch [OPTIONS] COMMAND [ARGS]...\n\n"
        "  Anabranch: TCP on paths that reorder, lose, delay or split packets, or\n"
        "  change their capacity.\n\n"
        "Options:\n"
        "  -V, --version  Print the version.\n"
        "  -h, --help     Show this message and exit.\n\n"
        "Commands:\n"
        "  demo        Run the reordering study in quick mode and write a page of it.\n"
        "  new         Write a commented scenario to begin with: DIR/scenario.toml.\n"
        "  run         Run one scenario once.\n"
        "  study       Reproduce published studies: claims with verdicts, figures.\n"
        "  sweep       Run a scenario over a grid, on all cores.\n"
        "  evaluate    Evaluate a control or a queue by RFC 9743, 5166 and 7928.\n"
        "  stress      Search for paths on which a congestion control fails.\n"
        "  compare     Set runs, or sweeps, side by side.\n"
        "  diagnose    Find out why the connections of a capture or a qlog are slow.\n"
        "  convert     Convert paths, runs and results from and to other tools.\n"
        "  list        List components, studies and formats, by kind.\n"
        "  explain     Describe a name: its effect, sources, parameters and bounds.\n"
        "  bench       Measure the engine's speed and memory (from a checkout).\n"
        "  validate    Run scenarios in two engines and compare the results.\n"
        "  script      Run behaviour scripts: which packets a TCP must send, and when.\n"
        "  vectors     Make reference vectors of controls, or compare with them.\n"
        "  shell       Open a shell inside a host of a scenario.\n"
        "  completion  Print a script that completes commands in a shell.\n"
        "  studio      Open the engine in a page of the browser.\n"
        "  cc          Congestion controls in the running kernel, as eBPF programs.\n"
        "  aqm         Queues at a device's egress, as eBPF programs in the kernel.\n"
        "  kernel      Linux kernels that run in virtual time, for --engine kernel.\n"
        "  plan        Predict what a component would bring on a link.\n"
        "  gateway     Predict the performance of a gateway, or call anabranch-gateway.\n"
        "  group       Put links of a bond to sleep during low load.\n\n"
        "  Exit status: 0 done, 1 the run or a check failed, 2 bad input, 130 or 143\n"
        "  ended by a signal.\n"
    )


@pytest.mark.parametrize(
    ("command", "options"),
    [
        ("run", ["--seed", "--set", "--json", "--out", "--engine", "--no-digest", "--no-packets", "--no-fast-path"]),
        ("study", ["--quick", "--robustness", "--json", "--out", "--engine", "--jobs", "--all"]),
        ("sweep", ["--grid", "--repeat", "--jobs", "--out", "--set", "--json"]),
        ("compare", ["A B...", "--json", "--out", "--measure"]),
        ("list", ["KIND", "--json"]),
        ("explain", ["NAME", "--json"]),
        ("bench", ["--json"]),
    ],
)
def test_every_option_of_the_contract(anabranch: Call, command: str, options: list[str]) -> None:
    done = anabranch(command, "--help")
    assert done.status == 0
    for option in options:
        assert option in done.out


def test_help_imports_no_slow_modules() -> None:
    code = (
        "import sys; sys.argv = ['anabranch', '--help']\n"
        "import anabranch.cli\n"
        "try:\n    anabranch.cli.main()\nexcept SystemExit:\n    pass\n"
        "heavy = {'polars', 'matplotlib', 'numpy', 'rich.console', 'anabranch._engine'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)  # noqa: S603
    assert done.returncode == 0, done.stderr


def test_a_run_imports_no_slow_modules(scenario_file: Path) -> None:
    """Detects the return of typer's own parsing of options, which uses pydantic."""
    code = (
        f"import sys; sys.argv = ['anabranch', 'run', {str(scenario_file)!r}]\n"
        "import anabranch.cli\n"
        "try:\n    anabranch.cli.main()\nexcept SystemExit:\n    pass\n"
        "heavy = {'polars', 'matplotlib', 'numpy', 'pydantic'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)  # noqa: S603
    assert done.returncode == 0, done.stderr


def test_version(anabranch: Call) -> None:
    for words in (["--version"], ["-V"], ["run", "-V"], ["cc", "-V"], ["cc", "list", "--version"]):
        assert anabranch(*words).out == f"anabranch {_engine.version()}\n"


@pytest.mark.parametrize("command", ["", "run", "study", "sweep", "list", "explain", "bench", "validate", "shell",
                                     "cc", "cc list", "cc load", "cc unload", "cc install", "cc status",
                                     "cc remove"])  # fmt: skip
def test_short_and_long_help_are_the_same(anabranch: Call, command: str) -> None:
    short, long = (anabranch(*command.split(), option) for option in ("-h", "--help"))
    assert (short.status, short.err) == (0, "")
    assert short.out == long.out
    assert [line for line in short.out.splitlines() if len(line) > 80] == []
    assert "..." not in short.out.partition("Commands:")[2]


def test_every_command_has_an_example(anabranch: Call) -> None:
    for command in commands():
        if command.path not in ("", "aqm", "cc", "kernel", "plan"):
            out = anabranch(*command.path.split(), "--help").out
            assert "Example:\n    " in out, command.path
            assert f"anabranch {command.path}" in out.partition("Example:")[2]


def test_the_list_of_commands_has_the_first_line_of_each_help() -> None:
    groups = [app, *(one for one in app.commands.values() if isinstance(one, Group))]
    assert len(groups) == 7
    for group in groups:
        for name, one in group.commands.items():
            assert group.lines.get(name, "") == (one.help or "").partition("\n")[0] or one.hidden


def test_no_shown_command_or_option_is_for_a_later_version(anabranch: Call) -> None:
    for command in commands():
        out = " ".join(anabranch(*command.path.split(), "--help").out.split())
        assert "later version" not in out
        assert "not in this version" not in out


def test_a_scenario_from_standard_input(scenario_file: Path, tmp_path: Path) -> None:
    def run(*words: object, given: bytes) -> subprocess.CompletedProcess[bytes]:
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
        return subprocess.run(  # noqa: S603
            [sys.executable, "-m", "anabranch", *map(str, words)],
            env=environment, input=given, capture_output=True, check=False, cwd=tmp_path,
        )  # fmt: skip

    text = scenario_file.read_bytes()
    told, read = (json.loads(run("run", file, "--json", given=text).stdout) for file in ("-", scenario_file))
    assert told["digest"] == read["digest"]
    wrong = run("run", "-", given=b'titel = "x"\n')
    assert (wrong.returncode, wrong.stdout) == (2, b"")
    assert wrong.stderr.startswith(b"error: standard input:1:1: ")
    latin = run("run", "-", given=b'title = "\xe9"\n')
    assert latin.stderr == b"error: standard input:1:10: not UTF-8 text\n"
    shell = run("shell", "-", "S", given=text)
    assert (shell.returncode, shell.stderr) == (
        2, b"error: standard input is the shell's; a scenario file was expected\n",
    )  # fmt: skip


def test_study_without_a_name_lists_the_studies(anabranch: Call) -> None:
    done = anabranch("study")
    assert (done.status, done.err) == (0, "")
    assert [line for line in done.out.splitlines() if len(line) > 80] == []
    rows = json.loads(anabranch("study", "--json").out)
    assert {row["name"] for row in rows} >= {"reordering", "fec"}
    for row in rows:
        assert row["name"] in done.out.splitlines()
        assert all(f"{time} " in done.out for time in row["takes"].values())


def test_times_of_a_study_are_text(anabranch: Call, sample_study: Path, tmp_path: Path) -> None:
    text = (sample_study / "study.toml").read_text(encoding="utf-8")
    for takes, message in (
        ("{ quik = '9 s' }", 'unknown key "quik"\n'), ("{ quick = 9 }", "quick must be text\n"),
        ("'9 s'", "takes must be a table\n"),
    ):  # fmt: skip
        (tmp_path / "study.toml").write_text(f"takes = {takes}\n{text}", encoding="utf-8")
        done = anabranch("study", tmp_path)
        assert (done.status, done.out) == (2, "")
        assert message in done.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--quick"], "error: no study is named, and the options are of a run\n  give a name, a directory or --all\n"),
        (["--all", "reordering"],
         "error: --all runs every study that ships, and some are named\n  give one of them\n"),
    ],
)  # fmt: skip
def test_a_study_is_named_or_all_are_selected(anabranch: Call, arguments: list[str], message: str) -> None:
    done = anabranch("study", *arguments)
    assert (done.status, done.out, done.err) == (2, "", message)


def test_all_runs_every_study(anabranch: Call, small_study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("anabranch.files.checkout.shipped_studies", lambda: {"one": small_study, "two": small_study})
    documents = json.loads(anabranch("study", "--all", "--quick", "--json").out)
    assert [document["study"] for document in documents] == ["sample-study", "sample-study"]


def test_run_json_is_one_document(anabranch: Call, scenario_file: Path) -> None:
    done = anabranch("run", scenario_file, "--json", "--seed", 7, "--set", "flow.main.cc=new-reno")
    assert (done.status, done.err) == (0, "")
    document = json.loads(done.out)
    assert (document["format"], document["seed"]) == (1, 7)
    assert set(document) >= {"scenario", "digest", "flows", "links", "fairness", "engine_stats", "resolved_scenario"}


def test_run_prints_a_readable_table(anabranch: Call, scenario_file: Path) -> None:
    done = anabranch("run", scenario_file, "--no-digest")
    assert done.status == 0
    assert done.out.splitlines()[0].endswith("  seed 1, 10.2 s simulated")
    assert "goodput" in done.out
    assert "digest" not in done.out


def test_run_out(anabranch: Call, scenario_file: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    arguments = ("run", scenario_file, "--set", "duration='2 s'", "--out", out, "--json")
    done = anabranch(*arguments)
    assert done.status == 0
    assert json.loads(done.out)["format"] == 1
    names = {p.name for p in out.iterdir()}
    tables = {f"{t}.parquet" for t in ("flows", "links", "samples", "link_samples", "packets", "window_events")}
    assert names == {"anabranch.json", "summary.json", "report.html"} | tables
    assert anabranch(*arguments, "--figures").status == 0
    assert {"cwnd.svg", "sequence.svg"} <= {p.name for p in (out / "figures").iterdir()}
    (out / "mine.txt").write_text("mine")
    done = anabranch(*arguments)
    assert (done.status, done.out) == (2, "")
    assert "files that are not ours (mine.txt)" in done.err
    assert (out / "mine.txt").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["validate", "{file}", "--seeds", "0"], "error: --seeds is 0; expected 1 to 1000\n"),
        (["validate", "{file}", "--host-times", "no.json"],
         "error: no.json: no such file\n"),
        (["run", "{file}", "--set", "flow.main.cc"],
         "error: --set 'flow.main.cc': PATH=VALUE was expected\n  --set flow.main.cc=cubic\n"),
        (["run", "{file}", "--samples", "0"], "error: --samples 0: a time of at least 0.001 ms was expected\n"),
        (["sweep", "{file}", "--grid", "flow.main.cc"],
         "error: --grid 'flow.main.cc': PATH=A,B,C or PATH=[ … ] was expected\n"
         "  --grid flow.main.cc=reno,cubic\n"),
        (["study", "--attempts", "3", "fairness"],
         "error: --attempts is for live runs\n  --engine live, or leave it out\n"),
        (["study", "--engine", "live", "--robustness", "fairness"],
         "error: --robustness is the simulator's\n  leave out --engine live, or --robustness\n"),
        (["run", "{file}", "--seed", "-1"],
         "error: --seed -1: a whole number from 0 to 9223372036854775807 was expected\n"),
        (["run", "{file}", "--seed", "99999999999999999999"],
         "error: --seed 99999999999999999999: a whole number from 0 to 9223372036854775807 was expected\n"),
        (["run", "{file}", "--samples", "inf"], "error: --samples inf: a time of at least 0.001 ms was expected\n"),
        (["run", "{file}", "--samples", "nan"], "error: --samples nan: a time of at least 0.001 ms was expected\n"),
        (["run", "{file}", "--samples", "1e-12"], "error: --samples 1e-12: a time of at least 0.001 ms was expected\n"),
        (["run", "{file}", "--why", "--no-packets"],
         "error: --why reads every packet, and --no-packets records none\n  give one of them\n"),
        (["run", "{file}", "--seed", "9223372036854775808"],
         "error: --seed 9223372036854775808: a whole number from 0 to 9223372036854775807 was expected\n"),
        (["run", "{file}", "--samples", "5"],
         "error: --samples selects output of --out, and there is no --out\n  give --out DIR, or leave it out\n"),
        (["run", "{file}", "--no-packets"],
         "error: --no-packets selects output of --out, and there is no --out\n  give --out DIR, or leave it out\n"),
        (["run", "{file}", "--snaplen", "64"],
         "error: --snaplen needs --pcap, whose packets it limits\n  give --pcap LINK=FILE, or leave it out\n"),
        (["run", "{file}", "--seed", "5", "--set", "seed=6"],
         "error: --set 'seed=6' beside --seed 5: it would be ignored\n  give one of them\n"),
        (["run", "{file}", "--set", "flow.main.cc=reno", "--set", 'flow."main".cc=cubic'],
         "error: --set gives flow.main.cc twice, 'flow.main.cc=reno' and 'flow.\"main\".cc=cubic': the first would be "
         "ignored\n  give one of them; `anabranch sweep --grid` runs several values\n"),
        (["sweep", "{file}", "--set", "seed=9223372036854775807", "--repeat", "2"],
         "error: 2 seeds from 9223372036854775807 on: seeds up to 9223372036854775807 were expected\n"),
        (["shell", "{file}", "sendr"], 'error: {file} has no host "sendr"\n  valid: R, S\n'),
        (["shell", "{file}", "R1"],
         'error: no flow begins or ends at "R1", so there is no host, only a place that packets pass\n'
         "  valid: S, R\n"),
        (["run", "{file}", "--engine", "liv"], 'error: there is no engine "liv"\n  did you mean "live"?\n'),
        (["run", "{file}", "--out", "{file}/out"],
         "error: --out {file}/out: cannot be written: Not a directory\n  choose another place\n"),
        (["study", "x", "--jobs", "-1"], "error: --jobs -1: at least 1 was expected\n"),
        (["study", "x", "--jobs", "0"], "error: --jobs 0: at least 1 was expected\n"),
        (["sweep", "{file}", "--jobs", "-1"], "error: --jobs -1: at least 1 was expected\n"),
        (["sweep", "{file}", "--jobs", "2000"],
         "error: --jobs 2000: at most 1024 was expected\n  leave it out to use all cores\n"),
        (["sweep", "{file}", "--grid", "flow.main.cc=cubic,cubic"],
         'error: the grid gives flow.main.cc the value "cubic" twice; the same run would count as two observations\n'
         "  give each value once; --repeat N runs N seeds per point\n"),
        (["sweep", "{file}", "--grid", "flow.main.cc=cubic", "--grid", 'flow."main".cc=reno'],
         "error: the grid gives flow.main.cc twice\n  give its values together: --grid flow.main.cc=A,B,C\n"),
        (["sweep", "{file}", "--grid", "flow.main.cc=cubic", "--grid", "flow.main.cc=reno"],
         "error: --grid gives flow.main.cc twice\n  give its values together: --grid flow.main.cc=A,B,C\n"),
        (["list", "queu"], 'error: there is no kind "queu"\n  did you mean "queue"?\n'),
        (["explain", "nosuch"],
         'error: there is nothing called "nosuch"\n  anabranch list shows all names\n'),
        (["run", "{file}", "--out", "{file}"], "error: --out {file} is a file; a directory was expected\n"),
        (["run", "{file}", "--out", "/dev/null"],
         "error: --out /dev/null is not a directory; a directory was expected\n"),
        (["run", "{file}", "--why=some"], "error: --why=some: --why or --why=all was expected\n  valid: all\n"),
        (["new", "{file}"], "error: {file} is a file; a directory was expected\n  choose another name\n"),
        (["convert", "{file}", "--to", "netem", "--link", "access", "--out", "/proc/x.sh"],
         "error: /proc/x.sh: cannot be written: No such file or directory\n  choose another place\n"),
        (["new", "/proc"],
         "error: /proc/scenario.schema.json: cannot be written: No such file or directory\n  choose another place\n"),
        (["explain", "cubik"], 'error: there is nothing called "cubik"\n  did you mean "cubic"?\n'),
    ],
)  # fmt: skip
def test_bad_input(anabranch: Call, scenario_file: Path, arguments: list[str], message: str) -> None:
    done = anabranch(*(a.replace("{file}", str(scenario_file)) for a in arguments))
    assert (done.status, done.out, done.err) == (2, "", message.replace("{file}", str(scenario_file)))


def test_an_unwritable_output_costs_no_run(
    anabranch: Call, scenario_file: Path, sample_study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: object, **__: object) -> None:
        raise AssertionError("the work was begun")

    for name in ("run", "run_many", "summarize_many"):
        monkeypatch.setattr(_engine, name, never)
    (tmp_path / "file").write_text("x")
    for command, what in (("run", scenario_file), ("sweep", scenario_file), ("study", sample_study),
                          ("compare", scenario_file)):  # fmt: skip
        done = anabranch(command, what, "--out", tmp_path / "file" / "out")
        assert done.status == 2
        assert done.err.startswith(f"error: --out {tmp_path / 'file' / 'out'}: cannot be written: ")


def test_a_number_the_engine_cannot_hold(anabranch: Call, scenario_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def wide(*_: object, **__: object) -> None:
        raise OverflowError("int too big to convert")

    monkeypatch.setattr(_engine, "run", wide)
    done = anabranch("run", scenario_file)
    assert (done.status, done.err) == (2, "error: a number is out of range: int too big to convert\n")


@pytest.mark.parametrize(
    "command", [["run", "FILE"], ["run", "FILE", "--json"], ["list"], ["--help"], ["--version"], ["run", "--help"]]
)
def test_a_reader_that_closes_its_pipe(command: list[str], scenario_file: Path) -> None:
    arguments = [str(scenario_file) if a == "FILE" else a for a in command]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    reading, writing = os.pipe()
    # The pipe is closed from the start: the first write fails.
    os.close(reading)
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-m", "anabranch", *arguments],
        env=environment, stdout=writing, stderr=subprocess.PIPE, text=True, check=False,
    )  # fmt: skip
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, "")


def test_habits_that_a_stack_does_not_model(anabranch: Call, scenario_file: Path) -> None:
    arguments = ("run", scenario_file, "--set", "duration='1 s'", "--set", "flow.main.stack=linux")
    last = anabranch(*arguments, "--wide").out.splitlines()[-1]
    assert last.startswith("stack linux-6.18: not modelled in this version: the host below TCP")
    assert last.endswith("; see anabranch explain linux-6.18")
    assert "not modelled; see anabranch explain linux-6.18" in " ".join(anabranch(*arguments).out.split())
    assert "not modelled" not in anabranch("run", scenario_file, "--set", "duration='1 s'").out
    json.loads(anabranch(*arguments, "--json").out)


def test_aliases(anabranch: Call) -> None:
    assert anabranch("explain", "linux").out == anabranch("explain", "linux-6.18").out
    assert json.loads(anabranch("explain", "new-reno", "--json").out)["name"] == "reno"
    assert "Also called: new-reno" in anabranch("explain", "new-reno").out
    assert "linux-6.18, linux" in anabranch("list", "stack").out
    items = json.loads(anabranch("list", "cc", "--json").out)
    assert {i["name"]: i["aliases"] for i in items}["reno"] == ["new-reno"]


def test_a_missing_file(anabranch: Call, tmp_path: Path) -> None:
    done = anabranch("run", tmp_path / "no.toml")
    assert (done.status, done.err) == (2, f"error: {tmp_path / 'no.toml'}: no such file\n")


def test_a_mistake_in_a_scenario(anabranch: Call, tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text('titel = "x"\n')
    done = anabranch("run", tmp_path / "s.toml", "--out", tmp_path / "out")
    assert (done.status, done.out) == (2, "")
    assert "titel" in done.err
    assert not (tmp_path / "out").exists()


def test_a_file_with_a_similar_name_is_suggested(anabranch: Call, tmp_path: Path) -> None:
    (tmp_path / "first.toml").write_text("")
    missing = tmp_path / "frist.toml"
    for command in (["run"], ["sweep"], ["convert"]):
        done = anabranch(*command, missing)
        assert (done.status, done.err) == (2, f'error: {missing}: no such file\n  did you mean "first.toml"?\n')
    assert anabranch("run", tmp_path / "else.toml").err == f"error: {tmp_path / 'else.toml'}: no such file\n"


def test_a_path_of_another_tool_is_refused_with_the_conversion(anabranch: Call, tmp_path: Path) -> None:
    file = tmp_path / "cell.sh"
    file.write_text("mm-delay 20 mm-loss uplink 0.01\n")
    done = anabranch("run", file)
    assert (done.status, done.out) == (2, "")
    assert done.err == (
        f"error: {file} is in the format `mahimahi`; a scenario (TOML) was expected\n"
        f"  anabranch convert {file} --out cell.toml\n"
    )


@pytest.mark.parametrize(
    ("arguments", "message", "helped"),
    [
        ("run", "error: missing argument 'FILE'", "run --help"),
        ("rnu x", "error: no such command 'rnu'. Did you mean 'run'?", "--help"),
        ("run x --seed y", "error: invalid value for '--seed': 'y': a whole number was expected", "run --help"),
    ],
)
def test_wrong_arguments_are_one_message(arguments: str, message: str, helped: str) -> None:
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-m", "anabranch", *arguments.split()],
        env={**os.environ, "PYTHONPATH": str(ROOT / "python")}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    first, second = done.stderr.splitlines()
    assert (done.returncode, done.stdout, first) == (2, "", message)
    assert second.endswith(f"anabranch {helped} lists its arguments and options")


def test_an_unknown_option(anabranch: Call) -> None:
    assert anabranch("run", "x.toml", "--sed", "3").status == 2


def test_interrupted(anabranch: Call, scenario_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(_engine, "run", stop)
    done = anabranch("run", scenario_file)
    assert (done.status, done.out, done.err) == (130, "", "error: interrupted\n")


def test_sweep(anabranch: Call, scenario_file: Path, tmp_path: Path) -> None:
    common = ("sweep", scenario_file, "--grid", "flow.main.cc=cubic,new-reno", "--set", "duration='1 s'",
              "--grid", "link.bottleneck.forward.queue.reorder.interval=[5, 50]")  # fmt: skip
    done = anabranch(*common, "--repeat", 2, "--jobs", 2, "--out", tmp_path / "out")
    assert done.status == 0
    assert "new-reno" in done.out
    assert {p.name for p in (tmp_path / "out").iterdir()} == {
        "anabranch.json",
        "points",
        "report.html",
        "runs.csv",
        "runs.parquet",
        "sweep.json",
        "table.parquet",
    }
    document = json.loads(anabranch(*common, "--json").out)
    assert len(document["points"]) == 4
    assert document["points"][0]["point"] == {
        "flow.main.cc": "cubic", "link.bottleneck.forward.queue.reorder.interval": 5,
    }  # fmt: skip


def test_parse_grid() -> None:
    assert parse_grid("a.b=1,2.5,x y") == ("a.b", [1, 2.5, "x y"])
    assert parse_grid("a=['1 ms', 2]") == ("a", ["1 ms", 2])
    assert parse_grid("a=true,false") == ("a", [True, False])
    assert parse_grid('kernel=6.1, 6.10,"6.12"') == ("kernel", ["6.1", "6.10", "6.12"])


def test_study_json(anabranch: Call, small_study: Path) -> None:
    done = anabranch("study", small_study, "--quick", "--json")
    assert (done.status, done.err) in {(0, ""), (1, done.err)}
    document = json.loads(done.out)
    assert (document["study"], document["mode"], document["engine"]) == ("sample-study", "quick", "sim")
    both = json.loads(anabranch("study", small_study, small_study, "--quick", "--json").out)
    assert [d["study"] for d in both] == ["sample-study", "sample-study"]


def test_study_whose_check_is_none(anabranch: Call, small_study: Path, tmp_path: Path) -> None:
    target = tmp_path / "study"
    shutil.copytree(small_study, target)
    path = target / "study.toml"
    text = path.read_text(encoding="utf-8").replace('"0.40 <= lowest <= 0.60"', '"lowest > 0"')
    path.write_text(text, encoding="utf-8")
    done = anabranch("study", target, "--quick", "--json")
    assert done.status == 1
    assert done.err == ("error: a check accepts its wrong system as well, so it proves nothing: study S2\n")
    claim = next(c for c in json.loads(done.out)["claims"] if c["id"] == "S2")
    assert (claim["verdict"], claim["control"]) == ("inconclusive", "reproduced")


def test_study_with_a_mistake(anabranch: Call, tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text("titel = 1\n")
    done = anabranch("study", tmp_path)
    assert done.status == 2
    assert done.err == (
        f'error: {tmp_path}/study.toml:1:1: unknown key "titel"\n  1 | titel = 1\n    | ^\n  did you mean "title"?\n'
    )


@pytest.mark.parametrize(
    ("name", "switches"),
    [
        ("linux-2.6.35", {"initial_cwnd": 3, "initial_rto": "3 s", "recovery_pace": "rate-halving"}),
        ("windows-7", {"initial_cwnd": 2, "min_rto": "300 ms", "timestamps": False, "send_buffer": "unlimited"}),
        ("ns2-sack1", {"initial_cwnd": 2, "delayed_ack": "off", "recovery_pace": "counted-pipe", "min_rto": "200 ms"}),
    ],
)
def test_a_profile_explains_its_switches(anabranch: Call, name: str, switches: dict[str, object]) -> None:
    told = json.loads(anabranch("explain", name, "--json").out)
    settings = told["details"]
    assert {switch: settings[switch] for switch in switches} == switches
    assert set(told["details"]["reasons"]) <= set(settings)
    assert told["sources"]
    text = anabranch("explain", name).out
    assert all(switch in text for switch in switches)
    assert all(line.split()[0] in text for line in told["details"]["not_modelled"])


def test_list_and_explain(anabranch: Call) -> None:
    items = json.loads(anabranch("list", "--json").out)
    assert {"cc", "queue", "stack"} <= {i["kind"] for i in items}
    assert all(i["kind"] == "cc" for i in json.loads(anabranch("list", "cc", "--json").out))
    told = anabranch("explain", "cubic").out
    assert "RFC 9438" in told
    assert json.loads(anabranch("explain", "cubic", "--json").out)["name"] == "cubic"
    assert "cubic" in anabranch("list").out


def test_bench_measures_commands(anabranch: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command_cost, "MEASUREMENTS", 1)
    monkeypatch.setattr(command_cost, "RUNS", 20)
    done = anabranch("bench", "--commands", "--json")
    assert (done.status, done.err) == (0, "")
    rows = json.loads(done.out)["commands"]
    assert {"start-up", "run --out", "sweep --out, besides"} <= {row["case"] for row in rows}
    assert all(row["value"] >= 0 and row["unit"] for row in rows)


def test_what_a_process_takes(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(command_cost.CLEAN.format(duration="1 s", rate="2 Mbit/s"))
    alone = command_cost._process(["run", "s.toml"], tmp_path)
    recorded = command_cost._process(["run", "s.toml", "--out", "out"], tmp_path)
    assert alone.recorded_packets == 0 < recorded.recorded_packets
    assert alone.cpu_s > 0
    # A process begins with the peak of the one that starts it.
    assert 10e6 < alone.peak_rss_bytes <= recorded.peak_rss_bytes
    told = command_cost.document({"large": alone, "large-out-why": recorded})
    assert told["large"]["cpu_s"] == alone.cpu_s
    assert told["per_recorded_packet"]["cpu_us"] == pytest.approx(
        1e6 * (recorded.cpu_s - alone.cpu_s) / recorded.recorded_packets, abs=1e-3
    )
    with pytest.raises(RunFailedError, match="status 2"):
        command_cost._process(["run", "missing.toml"], tmp_path)


@pytest.fixture
def failing_bench(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, object]:
    """A benchmark program with one failed case; returns its document."""
    printed: dict[str, object] = {
        "dumbbell": [{"case": "plain"}],
        "failed": [{"case": "contract/1/fec", "reason": "valgrind failed"}],
    }
    (tmp_path / "cargo").write_text(
        f"#!/bin/sh\ncase $* in *--json) echo '{json.dumps(printed)}';; *) echo plain 4.5;; esac\nexit 1\n"
    )
    (tmp_path / "cargo").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    costs = {"large": command_cost.Process(1, 1), "large-out-why": command_cost.Process(2, 2, 10)}
    monkeypatch.setattr(command_cost, "processes", lambda: costs)
    return printed


def test_a_failed_case_of_bench_leaves_the_document(anabranch: Call, failing_bench: dict[str, object]) -> None:
    done = anabranch("bench", "--json")
    assert (done.status, done.err) == (1, "error: the benchmark failed with status 1\n")
    document = json.loads(done.out)
    assert document | failing_bench == document
    assert document["output"]["large"]["cpu_s"] == 1


@pytest.mark.usefixtures("failing_bench")
def test_a_failed_case_of_bench_leaves_the_table(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(RunFailedError, match="status 1"):
        bench._engine(json=False)
    table = capfd.readouterr().out
    assert table.startswith("plain 4.5\n")
    assert "large-out-why" in table


def test_bench_needs_a_checkout(anabranch: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("anabranch.files.checkout.find_checkout", lambda: None)
    done = anabranch("bench")
    assert (done.status, done.err) == (
        2, "error: the benchmark is built from source, and there is no checkout here\n  run it in a clone\n",
    )  # fmt: skip


def test_a_seed_that_is_too_large_is_reported_as_a_number(anabranch: Call, scenario_file: Path) -> None:
    done = anabranch("run", scenario_file, "--set", "seed=9223372036854775808")
    assert done.status == 2
    assert "9223372036854775808 is too large" in done.err
    assert "expected a whole number up to 9223372036854775807" in done.err


def test_ranges_of_counts_agree(anabranch: Call, scenario_file: Path) -> None:
    for count in ("-1", "0", "5000000000"):
        done = anabranch("run", scenario_file, "--set", f"flow.main.count={count}")
        assert done.status == 2
        assert "expected a whole number from 1 to 1000000" in done.err


@pytest.mark.parametrize(
    ("change", "missing"),
    [
        ('gateway.g={ between = ["S", "R"], routes = ["bottleneck"] }', "split"),
        ('link.zzz={ rate = "1 Mbit/s" }', "between"),
        ('flow.b={ from = "S" }', "to"),
    ],
)
def test_a_table_given_as_a_whole_names_its_missing_key(
    anabranch: Call, scenario_file: Path, change: str, missing: str
) -> None:
    done = anabranch("run", scenario_file, "--set", change)
    assert done.status == 2
    assert f"the key `{missing}` is missing here" in done.err
    assert "there is no" not in done.err


def test_many_copies_are_summarized(anabranch: Call, scenario_file: Path) -> None:
    arguments = ("run", scenario_file, "--wide", "--set", "duration='1 s'", "--set", "flow.main.count=30")
    lines = [line.split() for line in anabranch(*arguments).out.splitlines()]
    assert ["main:", "mean", "of", "30"] in [line[:4] for line in lines]
    assert {"least", "most"} <= {line[0] for line in lines if line}
    assert not any(line and line[0].startswith("main/") for line in lines)
    every = anabranch(*arguments, "--all-flows").out
    assert all(f"main/{copy} " in every for copy in range(30))
    assert len(json.loads(anabranch(*(a for a in arguments if a != "--wide"), "--json").out)["flows"]) == 30
    few = anabranch("run", scenario_file, "--wide", "--set", "duration='1 s'", "--set", "flow.main.count=20").out
    assert all(f"main/{copy} " in few for copy in range(20))


def test_a_sweep_of_one_run_is_reported(anabranch: Call, scenario_file: Path, tmp_path: Path) -> None:
    alone = tmp_path / "alone.toml"
    alone.write_text(scenario_file.read_text().partition("[sweep]")[0])
    common = ("sweep", alone, "--set", "duration='1 s'")
    done = anabranch(*common)
    assert done.err.startswith("this was one run: there is no grid and no repeat")
    assert "±" not in done.out
    done = anabranch(*common, "--grid", "flow.main.cc=reno,cubic")
    assert (done.err, "±" in done.out) == ("", False)


def test_explain_lists_all_values_of_a_parameter(anabranch: Call) -> None:
    told = json.loads(anabranch("explain", "cubic", "--json").out)
    types = {p["name"]: p["type"] for p in told["parameters"]}
    assert types["reno_friendly"] == '"stack" | "rfc9438" | "rfc8312"'
    told = json.loads(anabranch("explain", "fq-codel", "--json").out)
    types = {p["name"]: p["type"] for p in told["parameters"]}
    assert (types["ce_threshold"], types["memory_limit"]) == ('"off" | duration', '"unlimited" | size')
    for name in ("drop-tail", "red"):
        assert "reorder" in [p["name"] for p in json.loads(anabranch("explain", name, "--json").out)["parameters"]]


@pytest.mark.parametrize(("value", "told"), [("stak", 'did you mean "stack"'), ("x", "stack")])
def test_an_alternative_keyword_is_suggested(anabranch: Call, scenario_file: Path, value: str, told: str) -> None:
    change = f'flow.main.cc={{ kind = "cubic", reno_friendly = "{value}" }}'
    message = anabranch("run", scenario_file, "--set", change).err
    assert told.replace('"', "`") in message.replace('"', "`")


def test_a_profile_has_its_reasons_with_the_switches(anabranch: Call) -> None:
    details = json.loads(anabranch("explain", "linux-6.18", "--json").out)["details"]
    lines = anabranch("explain", "linux").out.splitlines()
    names = {line[2:].split()[0]: at for at, line in enumerate(lines) if line[:2] == "  " and line[2:3].strip()}
    assert "1448 bytes" in lines[names["mss"]]
    assert {"reasons", "not_modelled"}.isdisjoint(names)
    text = " ".join(" ".join(lines).split())
    for switch, reason in details["reasons"].items():
        assert f" {switch} " in text.partition(reason)[0]
    assert all(f"- {lack}" in text for lack in details["not_modelled"])


def test_explain_covers_the_format(anabranch: Call) -> None:
    assert "eBPF" in anabranch("explain", "bpf").out
    assert [item["kind"] for item in json.loads(anabranch("explain", "trace", "--json").out)] == ["service", "delay"]
    told = json.loads(anabranch("explain", "hystart", "--json").out)
    assert told["places"][0]["place"] == "`transport` of a flow"
    assert told["profiles"]["linux-6.18"] == "linux"
    for name, words in (
        ("mss", ["Payload octets of a full segment", "1448 bytes", "linux-6.18, linux"]),
        ("sack", ["RFC 2018", "the profile's", "ns3-2018"]),
        ("between", ["[link.NAME]", "[gateway.NAME]"]),
        ("quantum", ["fq-codel (queue)"]),
    ):
        text = anabranch("explain", name).out
        assert all(word in text for word in words), text
    assert anabranch("explain", "hystrt").err == (
        'error: there is nothing called "hystrt"\n  did you mean "hystart"?\n'
    )


def test_list_describes_components(anabranch: Call) -> None:
    assert "A cubic function of the time since the last loss" in anabranch("list", "cc").out


def test_a_study_describes_its_figures(anabranch: Call, small_study: Path) -> None:
    done = anabranch("study", small_study, "--quick")
    assert "S2   reproduced\n     NewReno loses up to about 50 %\n     accept if     minimum over RI" in done.out
    assert [line for line in done.out.splitlines() if len(line) > 80] == []
    assert "Control: the verdict of the check on a system known to be wrong" in done.out
    assert "obustness" in done.out
