"""``anabranch studio``: the server answers this machine's browser alone, and links hold a scenario."""

from __future__ import annotations

import base64
import http.client
import json
import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from anabranch import Scenario
from anabranch.cli.studio import _leading_to
from anabranch.studio import page as studio_page
from anabranch.studio.jobs import Jobs, _tcp_ports
from anabranch.studio.page import fragment, with_server
from anabranch.studio.server import LOOPBACK, Server

from .command import Call

PAGE = "<html><meta content=\"default-src 'none'; x\"><noscript></noscript></html>"


@contextmanager
def serving(capture: Path | None = None, jobs: Jobs | None = None) -> Iterator[Server]:
    """A server in another thread."""
    with Server(PAGE, capture, jobs=jobs) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def asked(server: Server, path: str, host: str | None = None, method: str = "GET") -> tuple[int, bytes]:
    """The status and the body of an answer."""
    connection = http.client.HTTPConnection(LOOPBACK, server.port, timeout=10)
    try:
        connection.request(method, path, headers={"Host": host or f"{LOOPBACK}:{server.port}"})
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def worked(server: Server, name: str, order: object, **headers: str) -> tuple[int, list[dict[str, Any]]]:
    """The status and the parts of the answer to a request for work, as the page sends it."""
    host = f"{LOOPBACK}:{server.port}"
    connection = http.client.HTTPConnection(LOOPBACK, server.port, timeout=60)
    body = order if isinstance(order, bytes) else json.dumps(order).encode()
    sent = {"Host": host, "Origin": f"http://{host}", **headers}
    try:
        connection.request("POST", f"/{server.token}/{name}", body, {k: v for k, v in sent.items() if v})
        answer = connection.getresponse()
        return answer.status, [json.loads(line) for line in answer.read().splitlines()]
    finally:
        connection.close()


SCENARIO = """duration = "1 s"
[link.a]
between = ["S", "R"]
rate = "5 Mbit/s"
delay = "10 ms"
[flow.main]
from = "S"
to = "R"
"""


def test_runs_on_all_cores_are_those_of_the_command() -> None:
    with serving() as server:
        orders = [{"scenario": SCENARIO, "set": [f'link.a.rate="{rate} Mbit/s"'], "seed": 7} for rate in (1, 4)]
        status, parts = worked(server, "runs", {"runs": orders * 20})
    assert status == 200
    made = [summary for part in parts for summary in part["summaries"]]
    assert len(made) == 40
    for rate, summary in zip((1, 4), made, strict=False):
        own = Scenario.from_text(SCENARIO).set("link.a.rate", f"{rate} Mbit/s").run(seed=7).summary
        assert summary["flows"] == json.loads(json.dumps(own["flows"]))


def test_work_on_bad_orders_gives_one_message(tmp_path: Path) -> None:
    with serving() as server:
        for order, message in (
            ({"runs": [{"scenario": "x"}]}, "scenario.toml:1"),
            ({"runs": 5}, "at most"),
            ({"runs": [{"scenario": 5}]}, "a text was expected"),
            ({"runs": [{"scenario": SCENARIO}] * 2001}, "at most 2000 runs"),
            ({}, "runs"),
        ):
            status, parts = worked(server, "runs", order)
            assert status == 200
            assert message in parts[-1]["problem"], order
        # A scenario that came with a link reads no files and runs no programs, live neither.
        for text in (
            SCENARIO.replace('rate = "5 Mbit/s"', 'service = { kind = "trace", file = "/etc/passwd" }'),
            SCENARIO.replace('to = "R"', 'to = "R"\nworkload = { kind = "exec", command = ["touch", "x"] }'),
        ):
            for name, work in (("runs", {"runs": [{"scenario": text}]}), ("live", {"scenario": text})):
                assert "problem" in worked(server, name, work)[1][-1], name


def test_work_needs_the_page_as_origin(tmp_path: Path) -> None:
    file = tmp_path / "a.toml"
    file.write_text("old")
    with serving(jobs=Jobs(file)) as server:
        for origin in (
            "",
            "null",
            "http://attacker.example",
            f"http://{LOOPBACK}:1",
            f"https://{LOOPBACK}:{server.port}",
        ):
            assert worked(server, "save", {"text": "new"}, Origin=origin)[0] == 403, origin
        assert worked(server, "save", {"text": "new"}, Host="attacker.example")[0] == 421
        assert worked(server, "save", b"{")[0] == 400
        assert worked(server, "save", [])[0] == 404
        assert worked(server, "nothing", {})[0] == 404
        assert file.read_text() == "old"
        assert worked(server, "save", {"text": 5}) == (200, [{"problem": "a text was expected"}])
        assert worked(server, "save", {"text": "ä"}) == (200, [{"saved": "a.toml"}])
        assert file.read_text(encoding="utf-8") == "ä"
    with serving() as server:
        assert worked(server, "save", {"text": "new"})[0] == 404
        assert asked(server, f"/{server.token}/follow")[0] == 404


def test_the_servers_own_packets_are_left_out_of_a_followed_interface() -> None:
    head = bytes(12) + b"\x08\x00"
    for length in (5, 6):
        ip = bytes([0x40 | length]) + bytes(8) + b"\x06" + bytes(4 * length - 10)
        assert _tcp_ports(head + ip + b"\x1f\x90\x00\x50" + bytes(16)) == (b"\x1f\x90", b"\x00\x50")
    udp = bytes([0x45]) + bytes(8) + b"\x11" + bytes(10)
    assert _tcp_ports(head + udp + b"\x1f\x90\x00\x50") == ()
    assert _tcp_ports(b"\x08\x00") == ()


def test_one_request_for_work_at_a_time() -> None:
    jobs = Jobs()
    with jobs._busy, serving(jobs=jobs) as server:
        assert worked(server, "runs", {"runs": []})[0] == 409


def test_the_page_needs_the_token_and_the_host() -> None:
    with serving() as server:
        path = f"/{server.token}/"
        assert asked(server, path) == (200, PAGE.encode())
        assert asked(server, path, f"localhost:{server.port}")[0] == 200
        assert asked(server, path, method="HEAD") == (200, b"")
        for host in ("attacker.example", f"attacker.example:{server.port}", LOOPBACK, f"{LOOPBACK}:1", ""):
            assert asked(server, path, host or " ")[0] in {400, 421}, host
        for other in ("/", "//", "/x/", f"/{server.token[:-1]}/", f"/{server.token}/../x", f"/{server.token}/x"):
            assert asked(server, other)[0] == 404, other
        assert asked(server, f"/{server.token}/capture")[0] == 404
        assert asked(server, path, method="POST")[0] == 403
        assert asked(server, path, method="PUT")[0] == 501


def test_the_server_listens_on_the_loopback_interface_alone() -> None:
    with serving() as server:
        assert server.server_address[0] == "127.0.0.1"


def test_a_capture_is_sent_whole(tmp_path: Path) -> None:
    capture = tmp_path / "a.pcap"
    capture.write_bytes(bytes(range(256)) * 4000)
    with serving(capture) as server:
        assert asked(server, f"/{server.token}/capture") == (200, capture.read_bytes())
        capture.unlink()
        assert asked(server, f"/{server.token}/capture")[0] == 404


def test_the_page_with_a_capture_may_connect_to_its_server_alone() -> None:
    made = with_server(PAGE, {"capture": "</script><script>alert(1)"})
    assert "default-src 'none'; connect-src 'self'; x" in made
    assert "</script><script>alert" not in made


def test_a_fragment_holds_the_scenario() -> None:
    version, _, data = fragment('title = "ä"\n').partition(".")
    packed = base64.urlsafe_b64decode(data + "=" * (-len(data) % 4))
    assert version == "1"
    assert json.loads(zlib.decompress(packed, -15)) == {"text": 'title = "ä"\n'}


def test_bad_input(anabranch: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(studio_page, "PAGE", tmp_path / "studio.html")
    done = anabranch("studio")
    assert (done.status, done.err) == (
        2,
        "error: this installation has no studio\n  in a checkout, make studio builds it\n",
    )
    (tmp_path / "studio.html").write_text(PAGE)
    (tmp_path / "binary.toml").write_bytes(b"\xff")
    (tmp_path / "long.toml").write_bytes(b"#" * (4 * 2**20 + 1))
    for arguments, said in (
        (["missing.toml"], "missing.toml: no such file"),
        ([tmp_path], "is a directory; a regular file was expected"),
        ([tmp_path / "binary.toml"], "binary.toml: it is no UTF-8 text"),
        ([tmp_path / "long.toml"], "long.toml: a scenario file has at most 4 MiB"),
        ([tmp_path / "studio.html", "--out", tmp_path / "x.html"], "--out writes a page without a capture"),
        (["--port", "70000"], "--port 70000: 0 to 65535 was expected"),
        (["--follow", "none0"], "--follow none0: there is no such interface"),
        (["--follow", "lo", "--ring", "x"], "--ring x: expected a time"),
        (["--follow", "lo", tmp_path / "binary.toml"], "expected neither a file nor --out beside it"),
    ):
        done = anabranch("studio", *arguments)
        assert (done.status, done.out) == (2, "")
        assert said in done.err


def test_the_page_is_written(anabranch: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(studio_page, "PAGE", tmp_path / "studio.html")
    (tmp_path / "studio.html").write_text(PAGE)
    assert anabranch("studio", "--out", tmp_path / "out.html").status == 0
    assert (tmp_path / "out.html").read_text() == PAGE


def test_the_browsers_arguments_do_not_have_the_token() -> None:
    """All users of a machine can read the arguments of its programs."""
    with _leading_to("http://127.0.0.1:1/TOKEN/#1.</script>") as leading:
        assert "TOKEN" not in leading.as_uri()
        assert 'location.replace("http://127.0.0.1:1/TOKEN/#1.\\u003c/script>")' in leading.read_text()
        assert leading.parent.stat().st_mode & 0o077 == 0
    assert not leading.parent.exists()
