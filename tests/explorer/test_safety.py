"""Who may ask the explorer: this machine's own page, and nobody else."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from starlette.testclient import TestClient
from support.explorer import ADDRESS, HEADERS

from nram.explorer.safety import COOKIE
from nram.explorer.server import create_app, page_files
from nram.explorer.settings import MOST_BODY, Settings

START = "/api/start"


@pytest.mark.parametrize("host", ["127.0.0.1:8642", "localhost:8642", "[::1]:8642", "127.0.0.2:8642"])
def test_this_machine_by_any_of_its_names(client, host):
    assert client.post(START, json={}, headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "host",
    [
        "x@127.0.0.1:8642",
        "evil.example:8642",
        "127.0.0.1",
        "127.0.0.1:80",
        "localhost.evil.example:8642",
        "",
        "a:b:c",
        "[:8642",
        "10.0.0.7:8642",
    ],
)
@pytest.mark.parametrize("path", ["/", "/main.js", START])
def test_another_name_for_this_address_is_refused(client, host, path):
    """A name of somebody else's that leads here (DNS rebinding) comes with its own Host."""
    answer = (
        client.get(path, headers={"Host": host})
        if path != START
        else client.post(path, json={}, headers={"Host": host})
    )
    assert answer.status_code == 421
    assert "own address" in answer.json()["error"]


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:9999"},
        {"Origin": "https://127.0.0.1:8642"},
        {"X-Nram": "0"},
        {"Content-Type": "text/plain"},
        {"Content-Type": "application/x-www-form-urlencoded"},
        {"Sec-Fetch-Site": "cross-site"},
    ],
    ids=str,
)
def test_what_another_page_can_send_is_refused(client, headers):
    answer = client.post(START, content=json.dumps({}), headers=headers)
    assert answer.status_code == 403


def test_the_page_itself_may_ask(client):
    assert client.post(START, json={}, headers={"Origin": ADDRESS, "Sec-Fetch-Site": "same-origin"}).status_code == 200


def test_another_page_cannot_read_what_the_server_knows(client):
    assert client.get("/api/runs", headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403
    assert client.get("/api/runs", headers={"Sec-Fetch-Site": "same-origin"}).status_code == 200


@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS", "PATCH", "TRACE"])
def test_other_methods_are_refused(client, method):
    assert client.request(method, "/").status_code == 405


@pytest.mark.parametrize("path", ["/", "/main.js", "/shapes.css", START, "/nothing"])
def test_every_answer_has_a_strict_policy(client, path):
    found = client.get(path).headers
    policy = dict(part.strip().split(" ", 1) for part in found["content-security-policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert policy["frame-ancestors"] == "'none'"
    assert found["x-content-type-options"] == "nosniff"
    assert found["cross-origin-resource-policy"] == "same-origin"


def test_the_page_has_no_inline_script_or_style():
    html = page_files()["index.html"]
    assert "<script>" not in html and "<style" not in html and " style=" not in html and " on" + "click" not in html


@pytest.mark.parametrize(
    "path", ["/../settings.py", "/..%2fsettings.py", "/page/../../settings.py", "/%2e%2e/server.py", "/x"]
)
def test_only_the_files_of_the_page_are_served(client, path):
    assert client.get(path).status_code == 404


# ---- bodies


def test_a_body_that_is_too_large_is_not_read(client):
    answer = client.post(START, content=b" " * (MOST_BODY + 1))
    assert answer.status_code == 413 and "MiB" in answer.json()["error"]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"\xff", "not UTF-8 text"),
        (b"[]", "object"),
        (b"[" * 100_000, "nested"),
        (b'{"a": 1}', "unknown"),
        (b'{"complexity": 1e999}', ""),
    ],
)
def test_a_damaged_body_is_refused_in_words(client, body, words):
    answer = client.post(START, content=body)
    assert answer.status_code == 400
    assert words in answer.json()["error"]


def test_a_mistake_of_ours_shows_no_traceback(client, monkeypatch):
    monkeypatch.setattr("nram.explorer.programs.task_names", lambda: 1 / 0)
    answer = client.post(START, json={})
    assert answer.status_code == 500
    assert "Traceback" not in answer.text and "ZeroDivision" not in answer.text


# ---- where others reach the port


@pytest.fixture
def guarded(settings):
    app = create_app(replace(settings, host="0.0.0.0", token="secret"))
    with TestClient(app, "http://192.0.2.7:8642", headers=HEADERS, follow_redirects=False) as found:
        yield found
    app.state.explorer.jobs.close()


def test_without_the_token_nothing_is_answered(guarded):
    assert guarded.get("/").status_code == 401
    assert guarded.get("/?token=wrong").status_code == 401
    assert guarded.post(START, json={}).status_code == 401
    assert guarded.post(START + "?token=secret", json={}).status_code == 401


def test_the_address_with_the_token_leads_to_a_cookie(guarded):
    answer = guarded.get("/?token=secret")
    assert answer.status_code == 303 and answer.headers["location"] == "/"
    assert guarded.get("//evil.example/?token=secret").headers["location"] == "/"
    guarded.cookies.clear()
    assert guarded.get("/?token=secret").status_code == 303
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie and "samesite=lax" in cookie
    assert guarded.post(START, json={}).status_code == 200  # the client keeps the cookie
    guarded.cookies.clear()
    guarded.cookies.set(f"{COOKIE}_8642", "other")
    assert guarded.post(START, json={}).status_code == 401


def test_settings_without_a_token_are_for_this_machine_only():
    assert Settings().host == "127.0.0.1" and Settings().token is None
