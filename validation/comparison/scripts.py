"""Scripts of the checkout that belong to no package, as modules."""

from __future__ import annotations

import importlib.util
import sys
from functools import cache
from types import ModuleType

from comparison.oracle import ROOT


@cache
def load(path: str) -> ModuleType:
    """Return the module of a script, by its path in the checkout."""
    name = path.removesuffix(".py").replace("/", "_")
    spec = importlib.util.spec_from_file_location(name, ROOT / path)
    if spec is None or spec.loader is None:
        raise ImportError(path)
    module = importlib.util.module_from_spec(spec)
    # Dataclasses look up their module by name.
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
