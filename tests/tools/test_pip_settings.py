"""uv gets pip's settings, and uv's own settings take precedence."""

from pathlib import Path

from pip_settings import parse_config_list, uv_environment

LISTING = """\
:env:.timeout='30'
global.index-url='https://mirror.example/simple'
global.timeout='60'
install.index-url='https://other.example/simple'
freeze.timeout='10'
"""


def test_the_environment_precedes_the_command_and_global() -> None:
    assert parse_config_list(LISTING) == {
        "timeout": "30",
        "index-url": "https://other.example/simple",
    }


def test_an_index_becomes_uvs_default() -> None:
    pip = {
        "index-url": "https://mirror.example/simple",
        "cert": "/certs.pem",
        "proxy": "http://proxy.example:3128",
    }
    assert uv_environment(pip, {}) == {
        "UV_DEFAULT_INDEX": "https://mirror.example/simple",
        "SSL_CERT_FILE": "/certs.pem",
        "HTTP_PROXY": "http://proxy.example:3128",
        "HTTPS_PROXY": "http://proxy.example:3128",
    }


def test_all_extra_indexes_are_passed_on() -> None:
    pip = {"extra-index-url": "\\nhttps://a.example/simple\\nhttps://b.example/simple"}
    assert uv_environment(pip, {})["UV_INDEX"] == "https://a.example/simple https://b.example/simple"


def test_uvs_own_index_is_kept() -> None:
    pip = {"index-url": "https://mirror.example/simple", "extra-index-url": "https://a.example/simple"}
    assert uv_environment(pip, {"UV_INDEX_URL": "https://own.example/simple"}) == {}


def test_a_folder_of_wheels_counts_only_if_it_exists(tmp_path: Path) -> None:
    pip = {"find-links": f"{tmp_path} {tmp_path / 'absent'} https://wheels.example/"}
    assert uv_environment(pip, {}) == {"UV_FIND_LINKS": f"{tmp_path},https://wheels.example/"}


def test_no_settings_change_nothing() -> None:
    assert uv_environment(parse_config_list(""), {}) == {}
