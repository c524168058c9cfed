"""Errors of ``study.toml``: each test compares the whole message."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from anabranch.errors import UserError
from anabranch.study.definition import fill
from anabranch.study.parse import load


def changed(sample: Path, tmp_path: Path, old: str, new: str) -> Path:
    target = tmp_path / "bad"
    shutil.copytree(sample, target, dirs_exist_ok=True)
    path = target / "study.toml"
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    return target


def message(directory: Path) -> str:
    with pytest.raises(UserError) as caught:
        load(directory)
    return str(caught.value).replace(str(directory), "bad")


def test_the_sample_loads(sample_study: Path) -> None:
    study = load(sample_study)
    assert study.name == "sample-study"
    assert study.axes["ri"].full[:3] == (4, 8, 12)
    assert study.default_experiment == "reordering"
    assert [c.id for c in study.claims] == ["S1", "S2", "S4", "S5", "S9", "S11"]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (
            "about =",
            "abuot =",
            'bad/study.toml:3:1: unknown key "abuot"\n'
            '  3 | abuot = "Carries one claim of every form the reordering study needs."\n'
            '    | ^\n  did you mean "about"?',
        ),
        (
            'control = "nothing_reordered"\nfigures = ["fig3"]',
            'control = "nothing_reorderd"\nfigures = ["fig3"]',
            'bad/study.toml:108:11: there is no wrong system "nothing_reorderd"\n'
            '  108 | control = "nothing_reorderd"\n'
            '      |           ^\n  did you mean "nothing_reordered"?',
        ),
        (
            "min(normalised[newreno, 4 <= ri <= 99])",
            "min(normalised[newrono, 4 <= ri <= 99])",
            'bad/study.toml:106:38: "newrono" is no variant and no experiment\n'
            '  106 | measure = { lowest = "min(normalised[newrono, 4 <= ri <= 99])" }\n'
            '      |                                      ^\n  did you mean "newreno"?',
        ),
        (
            "range = [60, 100]",
            "range = [100, 60]",
            "bad/study.toml:14:9: range must be [low, high], low below high (above 0 with log)\n"
            "  14 | range = [100, 60]\n     |         ^",
        ),
        (
            'scenario = "reordering.toml"',
            'scenario = "reorder.toml"',
            'bad/study.toml:44:12: bad/reorder.toml: no such file\n  44 | scenario = "reorder.toml"\n'
            '     |            ^\n  did you mean "reordering.toml"?',
        ),
        (
            "seeds = 20",
            "seeds = 19",
            "bad/study.toml:86:9: at least 20 seeds are needed\n  86 | seeds = 19\n     |         ^",
        ),
        (
            'expression = "throughput / throughput[plain]"',
            'expression = "normalised / 2"',
            'bad/study.toml:62:14: "normalised" is made of itself\n  62 | expression = "normalised / 2"\n'
            "     |              ^",
        ),
        (
            'path = "flow.main.fast_recoveries"',
            'path = "flow.*.fast_recoveries"',
            'bad/study.toml:58:8: a path with * needs combine\n  58 | path = "flow.*.fast_recoveries"\n'
            '     |        ^\n  combine = "sum"',
        ),
        (
            'y = "normalised"\nvariants = ["newreno", "cubic"]',
            'y = "normalised"\nlines = { "a" = "throughput" }\nvariants = ["cubic"]',
            'bad/study.toml:155:9: a figure has either y or lines\n  155 | lines = { "a" = "throughput" }\n'
            "      |         ^",
        ),
        (
            'y = "normalised"\nvariants = ["newreno", "cubic"]',
            'lines = { "a" = "throughput" }\nvariants = ["newreno", "cubic"]',
            "bad/study.toml:155:12: a figure with lines shows one variant: name it\n"
            '  155 | variants = ["newreno", "cubic"]\n      |            ^',
        ),
        (
            'y = "normalised"\nvariants = ["newreno", "cubic"]',
            'lines = { "a" = "thruput" }\nvariants = ["cubic"]',
            'bad/study.toml:154:17: "thruput" is no quantity, axis or measure\n'
            '  154 | lines = { "a" = "thruput" }\n      |                 ^\n  did you mean "throughput"?',
        ),
        (
            'id = "S2"',
            'id = "S1"',
            'bad/study.toml:102:6: a second claim "S1"\n  102 | id = "S1"\n      |      ^',
        ),
    ],
)
def test_mistakes(sample_study: Path, tmp_path: Path, old: str, new: str, expected: str) -> None:
    assert message(changed(sample_study, tmp_path, old, new)) == expected


def test_neither_control_nor_reason(sample_study: Path, tmp_path: Path) -> None:
    bad = changed(sample_study, tmp_path, 'invariant = "nothing is reordered here; there is no system to be wrong"', "")
    assert "a claim needs either control (a wrong system) or invariant" in message(bad)


def test_not_toml(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text("title = \n")
    with pytest.raises(UserError, match=r"study.toml:1:9: not valid TOML"):
        load(tmp_path)


def test_empty(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text("")
    with pytest.raises(UserError, match=r"study.toml:1:1: a study needs at least one \[experiment.NAME\]"):
        load(tmp_path)


def test_no_study(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"has no study\.toml"):
        load(tmp_path)


def test_fill_keeps_types() -> None:
    assert fill("{}", 3) == 3
    assert fill("{} ms", 3) == "3 ms"
    assert fill("{} ms", 0.5) == "0.5 ms"
    assert fill("off", 3) == "off"
    assert fill({"kind": "x"}, 3) == {"kind": "x"}


def test_a_missing_top_level_key_is_reported_at_the_first_line(sample_study: Path, tmp_path: Path) -> None:
    text = (sample_study / "study.toml").read_text(encoding="utf-8")
    title = next(line for line in text.splitlines() if line.startswith("title"))
    told = message(changed(sample_study, tmp_path, title + "\n", ""))
    assert told.startswith('bad/study.toml:1:1: "title" is missing\n  1 | ')


def test_a_study_that_is_not_text(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_bytes(b"a = 1\n\xff\xfe")
    assert message(tmp_path) == "bad/study.toml:2:1: not UTF-8 text"
