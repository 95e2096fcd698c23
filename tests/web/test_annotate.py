"""Annotation: assignment of samples, saving, undo, and access to tasks."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from pii_bench.web.marks import Mark
from pii_bench.web.projects import Stages, change_project, keep_suggestion
from tests.web.study import (
    AGE,
    ALL,
    ANN,
    BO,
    BONN,
    RECORDS,
    TEXT,
    choice,
    new_project,
    open_next,
    sample_ids,
    save,
    state_of,
)

if TYPE_CHECKING:
    from tests.web.server import Browser, Server

JSON = {"content-type": "application/json"}


@pytest.fixture
def task(team: Server, ann: Browser) -> int:
    """The first task of ann, who is alone in a project."""
    return open_next(ann, new_project(team, "ann"))


def test_an_annotator_gets_sample_by_sample(team: Server, ann: Browser) -> None:
    project = new_project(team, "ann", "bob")

    first = open_next(ann, project)
    assert open_next(ann, project) == first
    assert state_of(ann, first)["text"] == TEXT
    assert save(ann, first, {"marks": [ANN]}, done=True).status_code == 200
    assert open_next(ann, project) != first


def test_samples_that_others_have_begun_are_assigned_first(
    team: Server, ann: Browser, bob: Browser
) -> None:
    project = new_project(team, "ann", "bob")
    save(ann, open_next(ann, project), {"marks": []}, done=True)
    save(ann, open_next(ann, project), {"marks": []})

    assert state_of(bob, open_next(bob, project))["text"] == TEXT


def test_a_sample_is_assigned_to_no_more_annotators_than_planned(
    team: Server, adam: Browser
) -> None:
    project = new_project(team, "ann", "bob", "adam", records=RECORDS[:1])
    for name in ("ann", "bob"):
        open_next(team.browser(name), project)

    answer = adam.post(f"/projects/{project.id}/next", follow_redirects=False)

    assert answer.headers["location"] == f"/projects/{project.id}/work"


def test_every_change_is_a_version_and_undo_survives_a_reload(
    team: Server, ann: Browser, task: int
) -> None:
    for marks in ([ANN], [ANN, BO], [ANN, BO, BONN]):
        assert save(ann, task, {"marks": marks}).status_code == 200

    elsewhere = team.browser("ann")
    undone: Any = {}
    for expected in (2, 1, 0):
        base = state_of(elsewhere, task)["version"]
        undone = elsewhere.post(f"/tasks/{task}/undo", json={"base": base}).json()
        assert len(undone["answer"]["marks"]) == expected
    assert not undone["canUndo"]
    base = undone["version"]
    assert elsewhere.post(f"/tasks/{task}/undo", json={"base": base}).status_code == 409
    save(elsewhere, task, {"marks": [BO]})
    assert state_of(elsewhere, task)["canUndo"]


def test_a_change_to_an_old_version_is_refused_and_overwrites_nothing(
    ann: Browser, task: int
) -> None:
    base = state_of(ann, task)["version"]
    save(ann, task, {"marks": [ANN]}, base=base)

    answer = save(ann, task, {"marks": [BO]}, base=base)

    assert answer.status_code == 409
    assert "changed in another window" in answer.json()["error"]["message"]
    assert [mark["start"] for mark in state_of(ann, task)["answer"]["marks"]] == [0]


def test_stage_2_requires_necessary_and_sufficient_to_be_confirmed(
    team: Server, ann: Browser
) -> None:
    project = new_project(team, "ann", stages=Stages.CHOOSE)
    task = open_next(ann, project)

    assert state_of(ann, task)["query"] == "How old is he, and where?"
    refused = save(ann, task, choice(3, sufficient=False), done=True)
    assert refused.json()["error"]["message"].startswith("Confirm")
    assert save(ann, task, choice(3), done=True).status_code == 200


@pytest.mark.parametrize(
    ("answer", "done", "message"),
    [
        ({"marks": [{**ANN, "end": 2}]}, False, "does not cover whole tokens"),
        ({"marks": [], "remark": "x" * 2001}, False, "at most 2,000 characters"),
        ({"marks": [], "remark": "x \ud83d"}, False, "half of a surrogate pair"),
        ({"marks": [{**ANN, "category": None}]}, True, "1 marked without a category yet."),
    ],
)
def test_an_invalid_answer_is_refused_and_not_saved(
    ann: Browser, task: int, answer: Any, done: bool, message: str
) -> None:
    # The client encodes no half of a surrogate pair itself.
    body = json.dumps({"base": 1, "answer": answer, "seconds": 1, "done": done})

    refused = ann.post(f"/tasks/{task}/save", content=body, headers=JSON)

    assert refused.status_code == 400
    assert message in refused.json()["error"]["message"]
    assert state_of(ann, task)["version"] == 1
    assert not state_of(ann, task)["done"]


def test_the_time_reported_by_the_browser_is_limited_by_the_time_that_passed(
    ann: Browser, task: int
) -> None:
    assert ann.post(f"/tasks/{task}/time", json={"seconds": 5000}).status_code == 200
    assert 0 < state_of(ann, task)["seconds"] < 60
    assert ann.post(f"/tasks/{task}/time", json={"seconds": -1}).status_code == 422


def test_a_selection_snaps_and_finds_all_places(ann: Browser, task: int) -> None:
    answer = ann.post(f"/tasks/{task}/occurrences", json={"start": 9, "end": 10})

    assert answer.json() == {"span": [8, 10], "spans": [[8, 10], [20, 22]]}


@pytest.mark.parametrize("name", ["bob", "adam", "olga", None])
def test_a_task_is_hidden_from_all_others(team: Server, task: int, name: str | None) -> None:
    other = team.browser(name)
    change = {"base": 1, "answer": {"marks": []}, "seconds": 0, "done": False}
    answers = [
        other.get(f"/tasks/{task}"),
        other.get(f"/tasks/{task}/state"),
        other.post(f"/tasks/{task}/save", json=change),
        other.post(f"/tasks/{task}/undo", json={"base": 1}),
        other.post(f"/tasks/{task}/time", json={"seconds": 1}),
        other.post(f"/tasks/{task}/occurrences", json={"start": 0, "end": 3}),
    ]

    assert {each.status_code for each in answers} == {404 if name else 401}


def test_a_project_is_visible_only_to_members_and_owners(
    team: Server, ann: Browser, bob: Browser, olga: Browser
) -> None:
    project = new_project(team, "ann")

    for path in (
        f"/projects/{project.id}/work",
        f"/projects/{project.id + 1}/work",
        "/projects/0/work",
    ):
        assert bob.get(path).status_code in (404, 422)
    assert bob.post(f"/projects/{project.id}/next").status_code == 404
    assert "Pilot" not in bob.page("/projects")
    assert "Pilot" in ann.page("/projects")
    assert "Pilot" in olga.page("/projects")


def test_a_removed_member_loses_open_tasks_and_done_answers_stay(
    team: Server, ann: Browser, olga: Browser
) -> None:
    project = new_project(team, "ann", "bob")
    done = open_next(ann, project)
    save(ann, done, {"marks": [ANN]}, done=True)
    opened = open_next(ann, project)
    form = {"account": team.account("ann").id, "action": "remove"}

    olga.post(f"/projects/{project.id}/people", data=form)

    assert ann.get(f"/tasks/{opened}").status_code == 404
    assert ann.get(f"/tasks/{done}").status_code == 404
    page = olga.page(f"/projects/{project.id}")
    assert "1 of 6 answers" in page


def test_a_page_of_a_deleted_project_changes_nothing_in_a_new_one(
    team: Server, ann: Browser, olga: Browser
) -> None:
    old = new_project(team, "ann")
    old_task = open_next(ann, old)
    olga.post(f"/projects/{old.id}/delete")
    new = new_project(team, "ann")
    new_task = open_next(ann, new)

    saved = save(ann, old_task, {"marks": [ANN]}, base=1, done=True)

    assert saved.status_code == 404
    assert state_of(ann, new_task)["answer"] == {"marks": []}
    assert olga.post(f"/projects/{old.id}/delete").status_code == 404
    assert ann.get(f"/projects/{new.id}/work").is_success


@pytest.mark.parametrize("name", ["ann", "adam"])
def test_only_an_owner_manages_a_project(team: Server, name: str) -> None:
    project = new_project(team, "ann", "adam")
    browser = team.browser(name)
    own = f"/projects/{project.id}"

    for path in ("/projects/new", own, f"{own}/export.jsonl", f"{own}/human.jsonl"):
        assert browser.get(path).status_code == 403
    for path in ("people", "settings", "prepare", "human", "delete"):
        form = {"account": "1", "threshold": "0.1"}
        assert browser.post(f"{own}/{path}", data=form).status_code == 403
    assert browser.get(f"{own}/disputes").status_code == (403 if name == "ann" else 200)


def test_suggestions_are_shown_only_if_switched_on_and_are_recorded(
    team: Server, ann: Browser, bob: Browser
) -> None:
    project = new_project(team, "ann", "bob", system="encoder", suggests=True)
    mark = Mark(0, 3, ("A",), "PER", None, "encoder")
    for sample_id in sample_ids(team, project).values():
        keep_suggestion(team.web.database, sample_id, [mark])

    task = open_next(ann, project)
    assert [m["origin"] for m in state_of(ann, task)["answer"]["marks"]] == ["encoder"]
    # The record stays, even if the browser sends another value.
    save(ann, task, {"marks": [], "suggested": None})
    assert state_of(ann, task)["answer"]["suggested"] == "encoder"

    change_project(team.web.database, project, suggests=False)
    other = open_next(bob, project)
    answer = state_of(bob, other)
    assert (answer["answer"]["marks"], answer["suggestion"]) == ([], None)
    save(bob, other, {"marks": [AGE], "suggested": "encoder"})
    assert state_of(bob, other)["answer"]["suggested"] is None


def test_an_annotator_below_the_pass_mark_cannot_continue(
    team: Server, ann: Browser, bob: Browser, olga: Browser
) -> None:
    project = new_project(team, "ann", "bob", qualification=1, stages=Stages.MARK)

    save(ann, open_next(ann, project), {"marks": list(ALL)}, done=True)
    assert "Passed: you reached 1.000" in ann.page(f"/projects/{project.id}/work")
    assert state_of(ann, open_next(ann, project))["text"] != TEXT

    tried = open_next(bob, project)
    save(bob, tried, {"marks": [ANN]}, done=True)
    # One of five marks: Strict-F1 of A is 1, of the two subjects 1/2.
    assert "You reached 0.500" in bob.page(f"/projects/{project.id}/work")
    refused = bob.post(f"/projects/{project.id}/next", follow_redirects=False)
    assert refused.headers["location"] == f"/projects/{project.id}/work"
    # Only the study lead can allow another try.
    assert save(bob, tried, {"marks": list(ALL)}, done=True).status_code == 409

    form = {"account": team.account("bob").id, "action": "again"}
    olga.post(f"/projects/{project.id}/people", data=form)
    assert state_of(bob, open_next(bob, project))["text"] == TEXT
    olga.post(f"/projects/{project.id}/people", data={**form, "action": "admit"})
    save(bob, open_next(bob, project), {"marks": []}, done=True)
    assert state_of(bob, open_next(bob, project))["text"] != TEXT


def test_html_in_guidelines_is_escaped(team: Server, ann: Browser, olga: Browser) -> None:
    project = new_project(team, "ann", guidelines="<script>alert(2)</script>")
    ann.page("/projects")
    page = ann.page(f"/projects/{project.id}/work")

    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(2)" in page
    olga.post(
        f"/projects/{project.id}/settings",
        data={"threshold": "0.5", "guidelines": "</textarea><script>alert(3)</script>"},
    )
    page = olga.page(f"/projects/{project.id}")
    assert "<script>alert" not in page
