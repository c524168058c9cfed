"""On the host: tests run in guests side by side, and this pytest takes over their reports."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from anabranch.errors import RunFailedError, UserError
from anabranch.kernel.images import Image, chosen
from anabranch.kernel.machine import Job

from . import programs
from .inside import INSIDE, REPORTS, ROOT

HERE = Path(__file__).resolve().parent
REQUIRED = "ANABRANCH_KERNEL_TESTS"
MEMORY_MIB = 2048


class Outside:
    """A plugin of pytest: the tests of this folder run in guests, one for each processor.

    A worker of pytest-xdist starts a guest for each module, because it receives its tests one at a
    time.
    """

    def __init__(self, config: pytest.Config) -> None:
        """Begin without reports."""
        self.config = config
        self.is_worker = hasattr(config, "workerinput")
        self.reports: dict[str, list[pytest.TestReport]] = {}
        self.logged: set[str] = set()
        self.jobs: list[Job] = []
        self.is_ended = False
        self.lock = threading.Lock()
        self.programs = ""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> bool | None:
        """Report a test of this folder; other tests run as usual."""
        if INSIDE in os.environ or not item.path.is_relative_to(HERE):
            return None
        if item.nodeid not in self.reports:
            items = [one for one in item.session.items if one.path.is_relative_to(HERE)]
            self._run([one for one in items if one.path == item.path] if self.is_worker else items)
        if item.nodeid not in self.logged:
            self._log(item)
        return True

    def _run(self, items: Sequence[pytest.Item]) -> None:
        try:
            image = chosen()
        except UserError as error:
            required = os.environ.get(REQUIRED) == "required"
            self.reports.update((item.nodeid, [_failed(item, str(error)) if required else _skipped(item, str(error))])
                                for item in items)  # fmt: skip
            return
        try:
            self.programs = programs.built() if any(item.path.name == programs.TESTS for item in items) else ""
        except programs.BuildError as error:
            failing = [item for item in items if item.path.name == programs.TESTS]
            self.reports.update((item.nodeid, [_failed(item, str(error))]) for item in failing)
            items = [item for item in items if item not in failing]
        guests = 1 if self.is_worker else len(os.sched_getaffinity(0))
        with ThreadPoolExecutor(guests) as pool:
            shares = [pool.submit(self._share, image, items[number::guests]) for number in range(guests)]
            try:
                for share in shares:
                    share.result()
            except BaseException:
                with self.lock:
                    self.is_ended = True
                    for job in self.jobs:
                        job.end()
                raise

    def _share(self, image: Image, items: Sequence[pytest.Item]) -> None:
        """Run tests in successive guests."""
        left = list(items)
        while left and not self.is_ended:
            why = self._guest(image, left)
            left = [item for item in left if item.nodeid not in self.reports]
            if left:
                # If a guest ends too early, the first test without a report has failed.
                self.reports[left[0].nodeid] = [_failed(left[0], why)]
                left = left[1:]

    def _guest(self, image: Image, items: Iterable[pytest.Item]) -> str:
        """Take over the reports of one guest; return how it ended."""
        by_id = {item.nodeid: item for item in items}
        since, read = time.monotonic(), 0
        under_way: list[pytest.TestReport] = []
        with Job() as job:
            with self.lock:
                self.jobs.append(job)
            (job.folder / programs.FILE).write_text(self.programs, "utf-8")
            file = job.folder / REPORTS

            def take(_: float) -> None:
                nonlocal since, read, under_way
                lines = file.read_text("utf-8").splitlines(keepends=True)[read:] if file.exists() else []
                for line in lines:
                    if not line.endswith("\n"):
                        break
                    read += 1
                    data = json.loads(line)
                    under_way.append(self.config.hook.pytest_report_from_serializable(config=self.config, data=data))
                    if under_way[-1].when == "teardown":
                        # The guest's clock does not advance while a test computes.
                        for report in under_way:
                            report.duration = 0.0
                        under_way[min(1, len(under_way) - 1)].duration = time.monotonic() - since
                        since = time.monotonic()
                        item = by_id[under_way[0].nodeid]
                        with self.lock:
                            self.reports[item.nodeid], under_way = under_way, []
                            if not self.is_worker:
                                self._log(item)

            words = [sys.executable, str(HERE / "inside.py"), *(f"{ROOT / nodeid}" for nodeid in by_id)]
            try:
                ended = job.run(image, words, memory_mib=MEMORY_MIB, progress=take)
                why = f"the guest ended with {ended.status}:\n{ended.out}{ended.err}"
            except RunFailedError as error:
                why = str(error)
            take(1.0)
        return why

    def _log(self, item: pytest.Item) -> None:
        self.logged.add(item.nodeid)
        hook = item.ihook
        hook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        for report in self.reports[item.nodeid]:
            hook.pytest_runtest_logreport(report=report)
        hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)


def _failed(item: pytest.Item, why: str) -> pytest.TestReport:
    return _report(item, "failed", why)


def _skipped(item: pytest.Item, why: str) -> pytest.TestReport:
    return _report(item, "skipped", (str(item.path), 0, f"Skipped: {'; '.join(map(str.strip, why.splitlines()))}"))


def _report(item: pytest.Item, outcome: Any, why: Any) -> pytest.TestReport:
    return pytest.TestReport(item.nodeid, item.location, dict.fromkeys(item.keywords, 1), outcome, why, "call")
