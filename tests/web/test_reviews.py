"""Reviews: status of each piece of a text, verdicts, and blind judgements."""

from __future__ import annotations

import json
import re
from html import unescape
from typing import TYPE_CHECKING, Any

import pytest

from pii_bench.cli import main
from pii_bench.datasets.sample import sample_from_record
from pii_bench.ranking.scores import Interval
from pii_bench.systems.predictions import Prediction
from pii_bench.tasks import Status
from pii_bench.web.reviews import (
    SHARED_REVIEWS,
    Item,
    Judgement,
    Kind,
    Mean,
    Pair,
    Review,
    agreement_of,
    create_review,
    masked_pair,
    order_of,
    results_of,
    rewritten_pair,
)
from tests.builders import unlisted, write_lines
from tests.web.study import RECORDS, SCRIPT, lines

if TYPE_CHECKING:
    from pathlib import Path

    from tests.web.server import Browser, Server

SUBJECTS = ((("Ann", "PER"), ("Bonn", "LOC"), ("32", "DEM"), ("met", "DEM")),)


def test_each_piece_of_a_masked_text_has_its_status() -> None:
    sample = sample_from_record(RECORDS[0])
    answer = Prediction(Status.OK, subjects=SUBJECTS, related=())

    pair = masked_pair(sample, answer, "rules")

    assert pair is not None
    # Needed is 32, which is masked; "met" is about nobody; Bo is not found.
    assert [piece for piece in pair.before if piece[1]] == [
        ("Ann", "hidden"),
        ("met", "vain"),
        ("Bo", "leaked"),
        ("Bonn", "hidden"),
        ("Bo", "leaked"),
        ("32", "vain"),
    ]
    assert "".join(text for text, _ in pair.before) == sample.description
    marked = [piece for piece in pair.after if piece[1]]
    assert [kind for _, kind in marked] == ["hidden", "vain", "leaked", "hidden", "leaked", "vain"]
    assert marked[0][0].startswith("<")


def test_a_needed_readable_value_has_the_status_kept() -> None:
    sample = sample_from_record(RECORDS[0])
    pair = masked_pair(sample, Prediction(Status.OK, subjects=SUBJECTS, related=("32",)), "rules")

    assert pair is not None
    assert ("32", "kept") in pair.before
    assert ("32", "kept") in pair.after
    assert masked_pair(sample, Prediction(Status.MALFORMED), "rules") is None


def new_pair(name: str, system: str = "one") -> Pair:
    return Pair(name, system, None, [(f"before {name}", "")], [(f"after {name} {SCRIPT}", "")])


def new_review(server: Server, kind: Kind, *people: str, count: int = 3) -> Review:
    pairs = [new_pair(f"s{n}", system) for n in range(count) for system in ("one", "two")]
    review = create_review(server.web.database, "Second look", kind, pairs)
    for name in people:
        SHARED_REVIEWS.add_member(server.web.database, review.id, server.account(name).id)
    return review


def items(server: Server, review: Review, name: str) -> list[int]:
    with server.web.database.reading() as connection:
        return order_of(connection, review, server.account(name).id)


def test_a_blind_review_names_no_system_and_has_an_order_per_person(
    team: Server, ann: Browser
) -> None:
    review = new_review(team, Kind.BLIND, "ann", "bob", count=6)
    anns, bobs = items(team, review, "ann"), items(team, review, "bob")

    page = ann.page(f"/reviews/items/{anns[0]}")

    assert sorted(anns) == sorted(bobs)
    assert anns != bobs
    assert anns != sorted(anns)
    assert "one" not in re.sub(r"<[^>]+>|Anyone|someone|anybody|none", "", page).split()
    assert re.search(r"\bs\d\b</a>", page) is None
    assert "<script>alert" not in page


def test_each_change_of_a_judgement_is_saved_and_done_leads_to_the_next(
    team: Server, ann: Browser
) -> None:
    review = new_review(team, Kind.BLIND, "ann")
    order = items(team, review, "ann")
    path = f"/reviews/items/{order[0]}"

    assert ann.post(path, json={"privacy": 4, "comment": "<script>"}).status_code == 200
    page = ann.page(path)
    assert re.search(r'name="privacy" value="4" checked', page)
    assert "&lt;script&gt;</textarea>" in page
    refused = ann.post(path, json={"privacy": 4, "done": True})
    assert refused.json()["error"]["message"] == "Choose an answer to each question first."
    response = ann.post(path, json={"privacy": 4, "meaning": 2, "done": True}).json()
    assert response == {"next": f"/reviews/items/{order[1]}"}
    for item in order[1:]:
        body = {"privacy": 5, "meaning": 5, "done": True}
        response = ann.post(f"/reviews/items/{item}", json=body).json()
    assert response == {"next": f"/reviews/{review.id}"}
    assert "All done" in ann.page(f"/reviews/{review.id}")


def test_the_owner_sees_means_by_system(team: Server, ann: Browser, olga: Browser) -> None:
    review = new_review(team, Kind.BLIND, "ann", "bob", count=1)
    first = min(items(team, review, "ann"))
    for name, privacy in (("ann", 4), ("bob", 1)):
        body = {"privacy": privacy, "meaning": 5, "comment": "<script>x", "done": True}
        assert team.browser(name).post(f"/reviews/items/{first}", json=body).is_success

    page = olga.page(f"/reviews/{review.id}")

    assert "<td>2.50</td><td>5.00</td>" in page
    # One text, two judges: no interval; on meaning both say 5, on privacy 4 and 1.
    assert re.search(r"Privacy</th><td>1</td><td>-1.000</td>", page)
    assert re.search(r"Meaning</th><td>1</td><td>1.000</td>", page)
    assert "<script>x" not in page
    verdicts = lines(olga.get(f"/reviews/{review.id}/verdicts.jsonl").text)
    assert [(each["system"], each["reviewer"], each["privacy"]) for each in verdicts] == [
        ("one", 1, 4),
        ("one", 2, 1),
    ]
    assert "Results" not in ann.page(f"/reviews/{review.id}")
    assert ann.get(f"/reviews/{review.id}/verdicts.jsonl").status_code == 403


def test_a_mean_has_an_interval_over_texts() -> None:
    pairs = [Pair(f"s{n}", "one", None, [(f"text {n // 2}", "")], [("", "")]) for n in range(4)]
    judgements = [
        (Item(n, pair), person, Judgement("", privacy, 5, done=True))
        for n, pair in enumerate(pairs)
        for person, privacy in ((1, 1 + n), (2, 1 + n), (3, 1 + n))[: 2 + n % 2]
    ]

    (result,) = results_of(judgements)

    # Each text has the mean of its judges; texts 0, 1 and 2, 3 are versions of one each.
    assert result.privacy == Mean(2.5, Interval(1.5, 3.5))
    assert result.meaning == Mean(5, Interval(5, 5))
    assert result.judgements == 2 + 3 + 2 + 3
    assert agreement_of(judgements, Kind.BLIND)["privacy"].fleiss == 1


def test_the_original_of_a_rewritten_text_shows_what_leaked() -> None:
    sample = sample_from_record(RECORDS[0])

    pair = rewritten_pair(sample, Prediction(Status.OK, rewritten="Bo, 32, is well."), "model")

    assert pair is not None
    assert [piece for piece in pair.before if piece[1]] == [
        ("Ann", "hidden"),
        ("Bo", "leaked"),
        ("Bonn", "hidden"),
        ("Bo", "leaked"),
        ("32", "kept"),
    ]
    assert pair.after == [("Bo, 32, is well.", "")]
    answer = Prediction(Status.OK, rewritten="Bo, 32, is well.")
    assert rewritten_pair(unlisted(sample), answer, "model") == pair
    assert rewritten_pair(sample, Prediction(Status.REFUSED), "model") is None


@pytest.mark.parametrize(("kind", "colours"), [("blind", False), ("masked", True)])
def test_a_stored_rewrite_run_can_be_reviewed(
    olga: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, *, colours: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    answers = [
        {"id": name, "prompt": "rewrite", "text": f"### Text:\nBo of {name}.", "finish": "stop"}
        for name in ("one", "two")
    ]
    model = f"replay:{write_lines(tmp_path / 'answers.jsonl', answers)}"
    dataset = str(write_lines(tmp_path / "study.jsonl", RECORDS))
    main(["run", "--task", "rewrite", "--model", model, "--dataset", dataset])
    (name,) = re.findall(r"<option>(.*?)</option>", olga.page("/reviews/new"))

    form = {"name": "Rewritten", "kind": kind, "run": unescape(name)}
    page = olga.post("/reviews/new", data=form)

    # The third sample has no answer.
    assert "0 of 2 done by you" in page.text
    items = re.findall(r'href="(/reviews/items/\d+)" aria-label="Text', page.text)
    texts = [olga.page(item) for item in items]
    assert sorted(name for name in ("one", "two") for text in texts if f"Bo of {name}." in text)
    assert ('class="f-leaked">Bo<' in "".join(texts)) == colours
    assert ("replay" in "".join(texts)) == colours


@pytest.mark.parametrize(
    ("body", "what"),
    [
        ({"verdict": "fine"}, "the verdict must be one of good, leaks, vain, both"),
        ({"verdict": "good", "comment": "x" * 2001}, "at most 2,000 characters"),
        ({"comment": "x \ud83d"}, "half of a surrogate pair"),
        ({"privacy": 6}, "privacy and meaning must be 1 to 5"),
        ({"meaning": 0}, "privacy and meaning must be 1 to 5"),
        ({"done": True}, "Choose an answer to each question first."),
        ({"seconds": -1}, "body.seconds"),
        ({"other": 1}, "body.other"),
    ],
)
def test_an_invalid_judgement_is_refused(team: Server, ann: Browser, body: Any, what: str) -> None:
    review = new_review(team, Kind.MASKED, "ann")
    path = f"/reviews/items/{items(team, review, 'ann')[0]}"
    headers = {"content-type": "application/json"}

    # The client encodes no half of a surrogate pair itself.
    refused = ann.post(path, content=json.dumps(body), headers=headers)

    assert refused.status_code in (400, 422)
    assert what in refused.json()["error"]["message"]


def test_a_review_is_visible_only_to_its_members_and_owners(
    team: Server, ann: Browser, bob: Browser
) -> None:
    review = new_review(team, Kind.MASKED, "ann")
    item = items(team, review, "ann")[0]

    for path in (
        f"/reviews/{review.id}",
        f"/reviews/items/{item}",
        "/reviews/99",
        "/reviews/items/99",
    ):
        assert bob.get(path).status_code == 404
    assert bob.post(f"/reviews/items/{item}", json={"verdict": "good"}).status_code == 404
    assert "Second look" not in bob.page("/reviews")
    for path in ("/reviews/new", f"/reviews/{review.id}/verdicts.jsonl"):
        assert ann.get(path).status_code == 403
    assert ann.post(f"/reviews/{review.id}/delete").status_code == 403
    assert team.browser().get(f"/reviews/items/{item}").status_code == 401


def test_a_review_is_created_from_a_file(olga: Browser) -> None:
    records = [
        {"id": "s1", "system": "rewriter", "query": "Why?", "before": "Ann, 32", "after": "She"},
        {"id": "s2", "system": "rewriter", "before": "Bo", "after": "He"},
    ]
    body = "".join(json.dumps(each) + "\n" for each in records).encode()
    form = {"name": "Rewritten", "kind": "blind"}

    page = olga.post("/reviews/new", data=form, files={"file": ("a.jsonl", body)})

    assert page.is_success
    assert "0 of 2 done by you" in page.text
    broken = olga.post("/reviews/new", data=form, files={"file": ("a.jsonl", b'{"id": "x"}\n')})
    assert broken.json()["error"]["message"] == "line 1: record: 'before' is missing"
    half = body.replace(b"Why?", b"\\ud83d")
    refused = olga.post("/reviews/new", data=form, files={"file": ("a.jsonl", half)})
    assert refused.json()["error"]["message"].startswith("line 1: ")
    assert "surrogate" in refused.json()["error"]["message"]
    empty = olga.post("/reviews/new", data=form)
    assert "nothing to review" in empty.json()["error"]["message"]


def test_a_deleted_review_is_removed_from_the_database_file(team: Server, olga: Browser) -> None:
    review = new_review(team, Kind.BLIND, "ann")

    assert olga.post(f"/reviews/{review.id}/delete").is_success

    assert b"before s1" not in team.on_disk()
