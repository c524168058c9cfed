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

import pytest

from anabranch.cli.studio import _leading_to
from anabranch.studio import page as studio_page
from anabranch.studio.page import fragment, with_capture
from anabranch.studio.server import LOOPBACK, Server

from .command import Call

PAGE = "<html><meta content=\"default-src 'none'; x\"><noscript></noscript></html>"


@contextmanager
def serving(capture: Path | None = None) -> Iterator[Server]:
    """A server in another thread."""
    with Server(PAGE, capture) as server:
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
        assert asked(server, path, method="POST")[0] == 501


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
    made = with_capture(PAGE, "</script><script>alert(1)", "capture")
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
        (["missing.toml"], "missing.toml: there is no such file"),
        ([tmp_path], "there is no such file"),
        ([tmp_path / "binary.toml"], "binary.toml: it is no UTF-8 text"),
        ([tmp_path / "long.toml"], "long.toml: a scenario file has at most 4 MiB"),
        ([tmp_path / "studio.html", "--out", tmp_path / "x.html"], "--out writes a page without a capture"),
        (["--port", "70000"], "--port 70000: 0 to 65535 was expected"),
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
