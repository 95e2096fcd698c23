"""Agreement, adjudication, export, and rows of the leaderboard."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pii_bench.datasets.catalog import load_dataset
from pii_bench.datasets.sample import sample_from_record
from pii_bench.ranking.external import human_rows
from pii_bench.tasks import Task
from pii_bench.web.outcomes import import_readings, stage_reports
from pii_bench.web.projects import Stages
from tests.web.study import (
    AGE,
    ALL,
    ANN,
    BO,
    BO_AGAIN,
    RECORDS,
    TEXT,
    choice,
    lines,
    new_project,
    open_next,
    sample_ids,
    save,
    state_of,
)

if TYPE_CHECKING:
    from pathlib import Path

    from pii_bench.ranking.rows import Row
    from pii_bench.web.projects import Project
    from tests.web.server import Browser, Server


def annotate(browser: Browser, project: Project, *marks: Any) -> None:
    """Finish the next sample of stage 1."""
    assert save(browser, open_next(browser, project), {"marks": list(marks)}, done=True).is_success


def choose(browser: Browser, project: Project, *needed: int, **more: Any) -> None:
    """Finish the next sample of stage 2."""
    answer = choice(*needed, **more)
    assert save(browser, open_next(browser, project), answer, done=True).is_success


def disputed(team: Server, **plan: Any) -> tuple[Project, str]:
    """Return a project whose sample ann and bob marked differently, and the path of the dispute."""
    project = new_project(team, "ann", "bob", "adam", records=RECORDS[:1], **plan)
    annotate(team.browser("ann"), project, *ALL)
    annotate(team.browser("bob"), project, ANN)
    return project, f"/projects/{project.id}/disputes/{sample_ids(team, project)['one']}/1"


def adjudicate(browser: Browser, path: str) -> int:
    """Open a dispute; return the task."""
    opened = browser.post(path, follow_redirects=False)
    return int(opened.headers["location"].rpartition("/")[2])


def row_of(browser: Browser, project: Project, folder: Path) -> Row:
    """Return the leaderboard's row of a project's answers."""
    path = folder / "human" / "pilot.jsonl"
    path.parent.mkdir()
    path.write_text(browser.get(f"/projects/{project.id}/human.jsonl").text, encoding="utf-8")
    (row,), broken = human_rows(folder)
    assert broken == []
    return row


def test_people_have_different_numbers_in_all_projects_of_a_dataset(
    team: Server, ann: Browser, bob: Browser, olga: Browser, tmp_path: Path
) -> None:
    (tmp_path / "human").mkdir()
    for name, browser in (("ann", ann), ("bob", bob)):
        project = new_project(team, name, records=RECORDS[:1], stages=Stages.CHOOSE, annotators=1)
        choose(browser, project, 3)
        answers = olga.get(f"/projects/{project.id}/human.jsonl").text
        (tmp_path / "human" / f"{name}.jsonl").write_text(answers, encoding="utf-8")

    (row,), _ = human_rows(tmp_path)

    assert row.note == "2 people: 2 answers, 1 samples"


def test_stage_2_asks_about_the_marks_of_the_majority(
    team: Server, ann: Browser, bob: Browser
) -> None:
    project = new_project(team, "ann", "bob", records=RECORDS[:1], threshold=0.5)
    annotate(ann, project, *ALL)
    assert "Nothing to decide" in team.browser("olga").page(f"/projects/{project.id}/disputes")
    waiting = ann.post(f"/projects/{project.id}/next", follow_redirects=False)
    assert waiting.headers["location"] == f"/projects/{project.id}/work"

    # Without Bonn: one of two annotators is no majority.
    annotate(bob, project, ANN, BO, BO_AGAIN, AGE)

    state = state_of(ann, open_next(ann, project))
    assert state["stage"] == 2
    assert [(item["person"], item["text"]) for item in state["items"]] == [
        ("A", "Ann"),
        ("B", "Bo"),
        ("B", "32"),
    ]
    assert state["items"][1]["spans"] == [[8, 10], [20, 22]]


def test_a_sample_with_low_agreement_goes_to_an_adjudicator_whose_decision_is_closed_by_stage_2(
    team: Server, ann: Browser, adam: Browser
) -> None:
    project, path = disputed(team)
    disputes = f"/projects/{project.id}/disputes"
    assert "one" in adam.page(disputes)

    task = adjudicate(adam, path)

    state = state_of(adam, task)
    # The answer starts from the majority, and the versions are anonymous.
    assert [mark["start"] for mark in state["answer"]["marks"]] == [0]
    assert [version["label"] for version in state["versions"]] == ["Annotator 1", "Annotator 2"]
    assert "ann" not in str(state["versions"]).replace("annot", "")
    assert not state["closed"]
    # Opening the sample again gives the same task.
    assert adjudicate(adam, path) == task

    assert save(adam, task, {"marks": [ANN, BO, AGE]}, done=True).is_success
    assert "Nothing to decide" in adam.page(disputes)
    items = state_of(ann, open_next(ann, project))["items"]
    assert [item["text"] for item in items] == ["Ann", "Bo", "32"]
    # Stage 2 asks about the decision, which can no longer be changed.
    assert state_of(adam, task)["closed"]
    assert save(adam, task, {"marks": [ANN, AGE]}, done=True).status_code == 409


def test_a_changed_decision_is_in_dispute_until_it_is_finished_again(
    team: Server, adam: Browser, olga: Browser
) -> None:
    project, path = disputed(team, stages=Stages.MARK, threshold=0.9)
    disputes = f"/projects/{project.id}/disputes"
    export = f"/projects/{project.id}/export.jsonl"
    task = adjudicate(adam, path)
    save(adam, task, {"marks": [ANN]}, done=True)

    save(adam, task, {"marks": [ANN, AGE]})
    assert "Nothing to decide" not in adam.page(disputes)
    assert olga.get(export).text == ""

    save(adam, task, {"marks": [ANN, AGE]}, done=True)
    assert "Nothing to decide" in adam.page(disputes)
    (record,) = lines(olga.get(export).text)
    assert [[e["text"] for e in s["entities"]] for s in record["subjects"]] == [["Ann"], ["32"]]

    version = state_of(adam, task)["version"]
    adam.post(f"/tasks/{task}/undo", json={"base": version})
    assert "Nothing to decide" not in adam.page(disputes)


def test_only_one_adjudicator_opens_a_disputed_sample(
    team: Server, ann: Browser, adam: Browser, olga: Browser
) -> None:
    project, path = disputed(team)
    unknown = f"/projects/{project.id}/disputes/{sample_ids(team, project)['one'] + 99}/1"

    assert ann.post(path).status_code == 403
    assert adam.post(path.removesuffix("1") + "2").status_code == 404
    assert adam.post(unknown).status_code == 404
    assert adam.post(path).is_success
    # A second adjudicator is refused.
    assert olga.post(path).status_code == 403


def test_an_answer_is_closed_once_all_annotators_have_finished(
    team: Server, ann: Browser, bob: Browser
) -> None:
    project = new_project(team, "ann", "bob", records=RECORDS[:1])
    task = open_next(ann, project)
    save(ann, task, {"marks": list(ALL)}, done=True)
    assert save(ann, task, {"marks": [ANN]}, done=True).is_success
    assert save(ann, task, {"marks": list(ALL)}, done=True).is_success
    annotate(bob, project, *ALL)

    refused = save(ann, task, {"marks": [ANN]})

    assert refused.status_code == 409
    assert "closed" in refused.json()["error"]["message"]
    assert state_of(ann, task)["closed"]


def test_the_project_page_shows_the_current_agreement(
    team: Server, ann: Browser, bob: Browser, olga: Browser
) -> None:
    project = new_project(team, "ann", "bob", records=RECORDS[:1], stages=Stages.MARK)
    annotate(ann, project, *ALL)
    assert "two people must finish the same sample" in olga.page(f"/projects/{project.id}")
    annotate(bob, project, ANN, BO, BO_AGAIN, AGE)

    with team.web.database.reading() as connection:
        (report,) = stage_reports(connection, project)

    # Ten tokens, nine equal. F1 of four marks against five.
    assert report.whole.f1 == pytest.approx(8 / 9)
    assert report.by_aspect["type"]["LOC"].f1 == 0
    assert report.by_aspect["type"]["PER"].fleiss == 1
    # By category and by person there are the same figures, and one for the owners of marks.
    assert report.by_aspect["category"]["City/Region"].f1 == 0
    assert report.by_aspect["category"]["Full Name"].fleiss == 1
    assert sorted(report.by_aspect["category"]) == ["Age", "City/Region", "Full Name"]
    # For person B, bob has Bo, Bo and 32; ann also has Bonn.
    assert report.by_aspect["person"]["A"].f1 == 1
    assert report.by_aspect["person"]["B"].f1 == pytest.approx(6 / 7)
    assert report.owners.fleiss == 1
    assert report.by_annotator["ann"].f1 == pytest.approx(8 / 9)
    assert list(report.by_pair) == [("ann", "bob")]
    assert "0.889" in olga.page(f"/projects/{project.id}")


def test_agreement_on_a_choice_is_reported_by_value(
    team: Server, ann: Browser, bob: Browser
) -> None:
    project = new_project(team, "ann", "bob", records=RECORDS[:1], stages=Stages.CHOOSE)
    items = state_of(ann, open_next(ann, project))["items"]
    own = {item["text"]: n for n, item in enumerate(items)}
    choose(ann, project, own["Ann"], own["Bonn"])
    choose(bob, project, own["Ann"])

    with team.web.database.reading() as connection:
        (report,) = stage_reports(connection, project)

    f1 = {value: each.f1 for value, each in report.by_aspect["type"].items()}
    assert f1 == {"PER": 1, "LOC": 0}


def test_the_export_is_a_dataset_with_all_votes(
    team: Server, ann: Browser, bob: Browser, olga: Browser
) -> None:
    project = new_project(team, "ann", "bob", records=RECORDS[:1])
    for browser in (ann, bob):
        annotate(browser, project, *ALL)
    assert lines(olga.get(f"/projects/{project.id}/export.jsonl").text) == []
    # Items: Ann, Bo, Bonn, 32.
    choose(ann, project, 2, 3)
    choose(bob, project, 2, 3, persons={"2": "A"}, remark="Whose is it?")

    (record,) = lines(olga.get(f"/projects/{project.id}/export.jsonl").text)

    sample = sample_from_record(record)
    assert sample.description == TEXT
    assert [(s.id, [e.text for e in s.entities]) for s in sample.subjects] == [
        ("A", ["Ann"]),
        ("B", ["Bo", "Bonn", "32"]),
    ]
    assert [(each.subject, each.text) for each in sample.related] == [("B", "Bonn"), ("B", "32")]
    annotation = record["meta"]["annotation"]
    votes = annotation["votes"]
    assert [(v["annotator"], v["stage"]) for v in votes] == [
        (1, "mark"),
        (2, "mark"),
        (1, "choose"),
        (2, "choose"),
    ]
    assert votes[3]["persons"] == [{"subject": "B", "text": "Bonn", "should_be": "A"}]
    assert votes[3]["remark"] == "Whose is it?"
    assert "'ann'" not in str(votes)
    assert [each["kappa"] for each in annotation["agreement"]] == [1, 1]


def test_the_answers_of_people_become_a_row_of_the_leaderboard(
    team: Server, ann: Browser, bob: Browser, olga: Browser, tmp_path: Path
) -> None:
    project = new_project(
        team, "ann", "bob", records=RECORDS[:1], stages=Stages.CHOOSE, threshold=0
    )
    # Needed is 32 alone, which is the last of Ann, Bo, Bonn, 32.
    choose(ann, project, 3)
    choose(bob, project, 2, 3)

    row = row_of(olga, project, tmp_path)

    assert (row.task, row.dataset) == (Task.QUERY_RELATED, project.dataset)
    assert row.metrics["f1"] == pytest.approx((1 + 2 / 3) / 2)
    assert row.note == "2 people: 2 answers, 1 samples"


def test_marks_are_scored_as_detection(
    team: Server, ann: Browser, olga: Browser, tmp_path: Path
) -> None:
    project = new_project(team, "ann", records=RECORDS[:1], stages=Stages.MARK, annotators=1)
    annotate(ann, project, *ALL)

    assert row_of(olga, project, tmp_path).metrics["strict_f1"] == 1


def test_the_readings_of_the_repository_become_a_project(team: Server, olga: Browser) -> None:
    project = import_readings(team.web.database, load_dataset("frontier"))

    with team.web.database.reading() as connection:
        (report,) = stage_reports(connection, project)

    assert sorted(report.by_annotator) == ["reader a", "reader b"]
    assert report.whole.cohen is not None
    assert report.whole.cohen > 0.9
    # The readers are not people.
    assert olga.get(f"/projects/{project.id}/human.jsonl").text == ""
    records = lines(olga.get(f"/projects/{project.id}/export.jsonl").text)
    assert len(records) > 250
    for record in records:
        # If a version was read twice, the first reading counts.
        votes = record["meta"]["annotation"]["votes"]
        assert [vote["imported"] for vote in votes] == [True, True]


def test_a_new_threshold_does_not_reopen_a_settled_sample(
    team: Server, ann: Browser, bob: Browser, olga: Browser
) -> None:
    project = new_project(team, "ann", "bob", "adam", records=RECORDS[:1])
    annotate(ann, project, *ALL)
    annotate(bob, project, ANN, BO, BO_AGAIN)
    assert "Nothing to decide" in olga.page(f"/projects/{project.id}/disputes")

    olga.post(f"/projects/{project.id}/settings", data={"threshold": "0.99", "guidelines": ""})

    # Stage 2 already has its items.
    assert "Nothing to decide" in olga.page(f"/projects/{project.id}/disputes")


def test_a_deleted_project_is_removed_from_the_database_file(
    team: Server, ann: Browser, olga: Browser
) -> None:
    project = new_project(team, "ann", records=RECORDS[1:2])
    annotate(ann, project)
    is_file = team.web.database.file is not None
    assert (b"Leeds Water" in team.on_disk()) == is_file

    assert olga.post(f"/projects/{project.id}/delete").is_success

    assert b"Leeds Water" not in team.on_disk()
