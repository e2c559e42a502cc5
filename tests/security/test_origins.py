"""Web pages of other origins, against a server without a token: what a developer's browser may be made to do."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from support.raw import ask, request, upgrade
from support.served import client, problem
from support.server import Server


def own(server: Server) -> str:
    return server.url


TRICKS = {
    "null": "null",
    "foreign": "https://evil.com",
    "own host as prefix": "{url}.evil.com",
    "own host as suffix": "http://evil.com/{host}",
    "own host as user": "http://{host}@evil.com",
    "another port": "http://127.0.0.1:1",
    "another name of loopback": "http://localhost:{port}",
    "another scheme": "ftp://{host}",
    "no scheme": "{host}",
    "empty": "",
    "upper case": "HTTP://{host}",
    "file": "file://",
    "two in one": "{url} https://evil.com",
}


def trick(server: Server, name: str) -> str:
    host = server.url.removeprefix("http://")
    return TRICKS[name].format(url=server.url, host=host, port=server.port)


@pytest.mark.parametrize("name", TRICKS)
@pytest.mark.promise("P-security-7")
def test_a_get_with_a_foreign_origin_is_refused(open_server: Server, name: str) -> None:
    with client(open_server) as http:
        answer = http.get("/v1/health", headers={"Origin": trick(open_server, name)})
    assert answer.status_code == 403
    assert problem(answer) == "forbidden"
    assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize("name", TRICKS)
def test_a_preflight_never_echoes_an_origin_that_is_not_listed(open_server: Server, name: str) -> None:
    headers = {"Origin": trick(open_server, name), "Access-Control-Request-Method": "POST"}
    with client(open_server) as http:
        answer = http.options("/v1/rpc", headers=headers)
    assert answer.status_code == 403
    assert not [name for name in answer.headers if name.startswith("access-control")]


@pytest.mark.parametrize("name", TRICKS)
@pytest.mark.promise("P-security-7")
def test_a_websocket_with_a_foreign_origin_is_refused_before_the_upgrade(open_server: Server, name: str) -> None:
    for path in ("/v1/rpc", "/acp", "/nowhere"):
        shake = upgrade(path, ("Origin", trick(open_server, name)), host=f"127.0.0.1:{open_server.port}")
        assert ask(open_server.port, shake).status == 403


def test_two_origins_are_refused(open_server: Server) -> None:
    both = [("Origin", open_server.url), ("Origin", "https://evil.com")]
    host = f"127.0.0.1:{open_server.port}"
    assert ask(open_server.port, request("GET", "/v1/health", *both, host=host)).status == 400


def test_our_own_pages_are_served(open_server: Server) -> None:
    with client(open_server) as http:
        assert http.get("/v1/health", headers={"Origin": open_server.url}).status_code == 200


@pytest.mark.parametrize(
    "media", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"]
)
@pytest.mark.parametrize(
    "path", ["/v1/rpc", "/v1/fs/move", "/v1/fs/mkdir?path=made", "/v1/fs/upload-batch?path=made", "/v1/tickets",
             "/v1/agents/mock/install"]
)  # fmt: skip
@pytest.mark.promise("P-security-10")
def test_a_simple_post_of_a_page_is_not_taken(open_server: Server, root: Path, path: str, media: str) -> None:
    body = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}'
    with client(open_server) as http:
        assert http.post(path, content=body, headers={"Content-Type": media}).status_code == 415
        cross = {"Content-Type": media, "Origin": "https://evil.com"}
        assert http.post(path, content=body, headers=cross).status_code == 403
    assert not (root / "made").exists()


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
@pytest.mark.parametrize("mode", ["no-cors", "cors", "navigate"])
def test_sec_fetch_site_of_another_site_is_refused(open_server: Server, site: str, mode: str) -> None:
    headers = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": mode, "Sec-Fetch-Dest": "document"}
    with client(open_server) as http:
        assert http.get("/v1/sessions", headers=headers).status_code == 403


def test_a_link_from_another_site_to_a_page_works(open_server: Server) -> None:
    headers = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    with client(open_server) as http:
        assert http.get("/docs", headers=headers).status_code == 200
        assert http.get("/docs", headers={**headers, "Sec-Fetch-Dest": "iframe"}).status_code == 403


@pytest.mark.parametrize("site", ["same-origin", "none"])
def test_sec_fetch_site_of_our_own_is_served(open_server: Server, site: str) -> None:
    with client(open_server) as http:
        assert http.get("/v1/sessions", headers={"Sec-Fetch-Site": site}).status_code == 200


@pytest.mark.promise("P-security-14")
def test_no_answer_can_be_framed_sniffed_or_embedded(open_server: Server, root: Path) -> None:
    (root / "page.html").write_text("<script>alert(1)</script>")
    with client(open_server) as http:
        answers = [http.get("/docs"), http.get("/v1/health"), http.get("/v1/nope")]
        file = http.get("/v1/fs/file", params={"path": str(root / "page.html")})
    for answer in [*answers, file]:
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"
    assert file.headers["content-type"] == "application/octet-stream"
    assert file.headers["content-disposition"].startswith("attachment")


def test_pages_allow_no_script_no_frame_and_nothing_from_elsewhere(open_server: Server) -> None:
    page = httpx.get(f"{open_server.url}/docs", trust_env=False)
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe-inline" not in policy
    assert "<script" not in page.text
    assert "http://" not in page.text
    assert "https://" not in page.text
