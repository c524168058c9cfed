"""`tools/check_one_build.py` finds a crate that the tests need with another feature."""

from __future__ import annotations

from typing import Any

import check_one_build as check


def graph(*libc_features: str) -> dict[str, Any]:
    libc = {
        "mode": "build",
        "pkg_id": "registry+https://index#libc@0.2.1",
        "profile": {"opt_level": "3"},
        "target": {"kind": ["lib"]},
        "features": list(libc_features),
    }
    script = {**libc, "target": {"kind": ["custom-build"]}, "features": ["build"]}
    return {"units": [libc, script]}


def test_an_additional_feature_is_named_with_its_side() -> None:
    engine, tests = check.features(graph("std")), check.features(graph("std", "extra_traits"))
    assert list(check.differences(engine, tests)) == ["libc@0.2.1: only the engine [], only the tests ['extra_traits']"]


def test_equal_features_are_one_build() -> None:
    assert list(check.differences(check.features(graph("std")), check.features(graph("std")))) == []
