"""The API to mask and unmask, and the Mask page without a browser."""

from __future__ import annotations

import logging
import threading
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest
from starlette.websockets import WebSocketDisconnect

import pii_bench
from pii_bench.masking import unmask
from pii_bench.web import mask
from pii_bench.web.settings import MOST_CHARACTERS, Settings
from pii_bench.web.uploads import Upload
from tests.web.letters import LETTER, docx
from tests.web.server import Server

if TYPE_CHECKING:
    from pathlib import Path

    from tests.web.server import Browser

TEXT = "My name is Ann Lee, I am 32. Write to a.lee@mail.example.org or call 902-555-0199."
QUERY = "How old am I?"


def test_masking_gives_the_result_of_the_python_function(local: Server) -> None:
    answer = local.program().post("/mask", json={"text": TEXT, "query": QUERY}).json()

    expected = pii_bench.mask(TEXT, QUERY)
    assert answer["masked"] == expected.text
    assert {tag: tuple(texts) for tag, texts in answer["mapping"].items()} == expected.mapping
    assert "a.lee@mail.example.org" not in answer["masked"]
    places = [(s["start"], s["end"], s["tag"]) for s in answer["spans"] if s["tag"]]
    assert places == [(span.start, span.end, span.tag) for span in expected.spans]


def test_given_entities_are_masked_without_a_system(local: Server) -> None:
    body = {
        "text": "Ann met Bob in Rome.",
        "entities": [{"text": "Ann", "type": "PER"}, {"text": "Rome", "type": "LOC"}],
        "keep": ["Rome"],
    }

    answer = local.program().post("/mask", json=body).json()

    assert answer["masked"] == "<Person> met Bob in Rome."
    assert answer["spans"] == [
        {"start": 0, "end": 3, "type": "PER", "tag": "<Person>"},
        {"start": 15, "end": 19, "type": "LOC", "tag": None},
    ]


def test_unmasking_gives_the_result_of_the_python_function(local: Server) -> None:
    mapping = {"<Person>": ("Ann",), "<Date 1>": ("May 3",)}
    text = "Dear [person], see <Date 2>."

    answer = local.program().post("/unmask", json={"text": text, "mapping": mapping}).json()

    assert answer == {
        "text": unmask(text, mapping),
        "absent": ["<Date 1>"],
        "inexact": ["<Date 2>"],
    }


@pytest.mark.parametrize(
    ("path", "body", "what"),
    [
        ("/mask", {"text": ["Ann Lee"], "query": "?"}, "body.text"),
        # In the words of JSON.
        ("/unmask", {"text": "x", "mapping": {"<A>": "Ann Lee"}}, "should be a valid list"),
    ],
)
def test_a_validation_error_does_not_quote_the_text(
    local: Server, path: str, body: dict[str, object], what: str
) -> None:
    answer = local.program().post(path, json=body)

    assert answer.status_code == 422
    assert what in answer.json()["error"]["message"]
    assert "Ann Lee" not in answer.text


def test_a_request_that_lacks_something_is_the_clients_error(local: Server) -> None:
    program = local.program()

    for path, body, what in (
        ("/mask", {"text": TEXT}, "the query is blank"),
        ("/mask", {"text": TEXT, "query": " "}, "the query is blank"),
        ("/unmask", {"text": "x", "mapping": {"<Person>": []}}, "tag 1 of the mapping has no text"),
    ):
        answer = program.post(path, json=body)
        assert answer.status_code == 400
        assert what in answer.json()["error"]["message"]


def test_detection_names_the_recipients_of_the_text(local: Server) -> None:
    answer = local.program().post("/detect", json={"text": TEXT}).json()

    assert {"text": "a.lee@mail.example.org", "type": "CODE"} in answer["entities"]
    assert answer["recipients"] == ["this machine"]


def test_a_failure_in_a_batch_affects_only_its_own_text(local: Server) -> None:
    requests = [{"text": TEXT, "query": QUERY}, {"text": TEXT, "query": " "}]

    results = local.program().post("/mask/batch", json={"requests": requests}).json()["results"]

    assert results[0]["masked"] == pii_bench.mask(TEXT, QUERY).text
    assert results[1] == {"error": "the query is blank: give the question about the text"}


def test_a_long_text_is_read_in_pieces_with_progress_messages(local: Server) -> None:
    text = "\n\n".join(f"{TEXT} This is letter number {n}." for n in range(60))

    with local.program().websocket_connect("ws://localhost/mask/stream") as socket:
        socket.send_json({"text": text, "query": QUERY})
        progress = []
        while "result" not in (message := socket.receive_json()):
            progress.append(message)

    assert [each["piece"] for each in progress] == [1, 2, 3]
    assert {each["of"] for each in progress} == {3}
    assert progress[-1]["end"] == len(text)
    assert unmask(message["result"]["masked"], message["result"]["mapping"]) == text
    assert "a.lee@mail" not in message["result"]["masked"]


@pytest.mark.parametrize(
    ("message", "what"),
    [
        ("{", "JSON"),
        ('{"query": "x"}', "text"),
        ('{"text": "secret", "query": " "}', "the query is blank"),
    ],
)
def test_an_invalid_message_on_a_stream_gives_an_error(
    local: Server, message: str, what: str
) -> None:
    with local.program().websocket_connect("ws://localhost/mask/stream") as socket:
        socket.send_text(message)
        error = socket.receive_json()["error"]["message"]

    assert what in error
    assert "secret" not in error


@pytest.mark.parametrize(
    ("kind", "origin"),
    [("local", "https://evil.example.org"), ("local", "null"), ("team", "http://localhost")],
)
def test_a_stream_from_another_site_or_without_login_is_refused(
    request: pytest.FixtureRequest, kind: str, origin: str
) -> None:
    program = request.getfixturevalue(kind).program()
    url = "ws://localhost/mask/stream"

    with (
        pytest.raises(WebSocketDisconnect),
        program.websocket_connect(url, headers={"origin": origin}),
    ):
        pass


def test_a_text_that_is_too_long_is_refused(local: Server) -> None:
    most = MOST_CHARACTERS
    program = local.program()

    for path, body in (
        ("/mask", {"text": "x" * (most + 1), "query": "?"}),
        ("/detect", {"text": "x" * (most + 1)}),
        ("/unmask", {"text": "x" * (most + 1), "mapping": {}}),
        ("/mask/batch", {"requests": [{"text": "x" * most, "query": "?"}] * 2}),
    ):
        assert program.post(path, json=body).status_code == 413


def test_with_accounts_the_api_requires_a_login(team: Server) -> None:
    paths = ("/mask", "/mask/file", "/detect", "/unmask", "/mask/batch", "/v1/chat/completions")
    for path in paths:
        assert team.program("sk-guessed").post(path, json={"text": "x"}).status_code == 401
    assert team.program().get("/metrics").status_code == 401
    assert team.program().get("/health").json()["status"] == "ok"


def test_metrics_count_requests_by_route(local: Server) -> None:
    program = local.program()
    program.get("/health?secret")
    program.get("/secret")

    metrics = program.get("/metrics").text

    line = 'pii_bench_request_seconds_count{method="GET",route="/health",status="200"} 1.0'
    assert line in metrics
    assert "secret" not in metrics


def test_the_schema_has_every_route_of_the_api(local: Server) -> None:
    paths = local.program().get("/openapi.json").json()["paths"]

    assert {"/mask", "/mask/batch", "/detect", "/unmask", "/health", "/metrics"} <= set(paths)
    assert "/login" not in paths


def drop(browser: Browser, ending: str, data: bytes) -> tuple[int, dict[str, object]]:
    answer = browser.post("/mask/file", content=data, headers={"x-file-ending": ending})
    return answer.status_code, answer.json()


def test_the_page_says_that_the_text_stays_on_this_machine(local: Server) -> None:
    page = " ".join(local.browser().page("/mask").split())

    assert "runs on this machine: your text does not leave it" in page


def test_the_page_names_the_recipients_of_the_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PII_BENCH_API_KEY", "x")
    settings = Settings(
        database=str(tmp_path / "web.sqlite"),
        workers=0,
        system="openai/some-model",
        base_url="https://models.example.org/v1",
    )
    with ExitStack() as stack:
        page = " ".join(Server(settings, stack).browser().page("/mask").split())

    assert "sends your <b>unmasked</b> text to openai (https://models.example.org/v1)" in page
    assert "does not leave" not in page


def test_the_text_of_an_uploaded_file_is_returned(local: Server) -> None:
    status, value = drop(local.browser(), ".docx", docx())

    assert status == 200
    assert LETTER in str(value["text"])
    assert value["notes"] == []


def test_uploads_beyond_the_limit_of_waiting_files_are_refused(
    local: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = threading.Event()

    def read(*_: object) -> Upload:
        assert release.wait(60)
        return Upload("text")

    monkeypatch.setattr(mask, "read_upload", read)
    monkeypatch.setattr(mask, "MOST_WAITING_FILES", 1)
    browser = local.browser()

    # Two are read, and one waits.
    with ThreadPoolExecutor() as pool:
        uploads = [pool.submit(drop, browser, ".txt", b"text") for _ in range(4)]
        wait(uploads, return_when=FIRST_COMPLETED)
        release.set()
        statuses = [upload.result()[0] for upload in uploads]

    assert sorted(statuses) == [200, 200, 200, 503]
    assert drop(browser, ".txt", b"text")[0] == 200


def test_masked_texts_are_in_no_file_and_no_log(
    team: Server, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    browser = team.browser("ann")
    secret = "hohenlohe@mail.example.org"  # noqa: S105 -- an address
    body = {"text": f"Write to {secret}.", "query": "Is this polite? Yours, Hohenlohe"}

    mapping = browser.post("/mask", json=body).json()["mapping"]
    answer = browser.post("/unmask", json={"text": "<Email Address>", "mapping": mapping})
    drop(browser, ".txt", f"Write to {secret}.".encode())
    browser.post("/mask", json={**body, "query": " "})
    browser.post("/mask", json={"text": [secret]})

    assert answer.json()["text"] == secret
    team.web.database.close()
    written = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert len(written) > 10_000
    assert b"hohenlohe" not in written.lower()
    assert "hohenlohe" not in caplog.text.lower()


def test_no_page_has_inline_scripts_or_styles(team: Server, olga: Browser) -> None:
    pages = [olga.page(path) for path in ("/", "/mask", "/none")]
    pages.append(team.browser().page("/login"))

    for page in pages:
        assert "<style" not in page
        assert "style=" not in page
        assert "onclick" not in page
        assert page.count("<script") == page.count('<script type="module" src="/static/')
        assert "//" not in page.replace("http://localhost", "")
