"""What the tests of the explorer share: an application without a socket, and a client that asks as the page does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient
from support.explorer import ADDRESS, HEADERS

from nram.explorer.server import create_app
from nram.explorer.settings import Settings


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    (tmp_path / "runs").mkdir()
    return Settings(folders=(tmp_path / "runs", tmp_path / "learned"), kept=tmp_path / "learned")


@pytest.fixture
def client(settings: Settings) -> Iterator[TestClient]:
    app = create_app(settings)
    with TestClient(app, ADDRESS, raise_server_exceptions=False, headers=HEADERS) as found:
        yield found
    app.state.explorer.jobs.close()


@pytest.fixture
def ask(client: TestClient) -> Callable[..., Any]:
    """`ask(path, **body)` gives the answer; `status` is the one that is expected."""

    def asked(path: str, status: int = 200, **body: Any) -> Any:
        answer = client.post(path, json=body)
        assert answer.status_code == status, answer.text
        return answer.json()

    return asked
