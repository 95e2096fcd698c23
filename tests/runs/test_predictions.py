from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pii_bench.errors import InputFileError
from pii_bench.models.base import Completion, Draws, Finish
from pii_bench.runs.predictions import (
    Prediction,
    PredictionsFile,
    compose,
    names_types,
    predicted_tasks,
    read_predictions,
    read_response,
    vote,
    write_predictions,
)
from pii_bench.tasks import Status, Task
from tests.builders import write_lines

if TYPE_CHECKING:
    from pathlib import Path
    from random import Random

    from pii_bench.prompting.strategies import Output


FOUND = ((("Ann Lee", "PER"), ("32", "DEM")),)

DETECTED = Prediction(Status.OK, subjects=FOUND)
RELATED = Prediction(Status.OK, related=("32",))


@pytest.mark.parametrize(
    ("task", "said", "output", "prediction"),
    [
        (Task.DETECTION, 'Subject1{"Ann Lee": "PER", "32": "DEM"}', "text", DETECTED),
        (Task.QUERY_RELATED, '### Answer: ["32"]', "text", RELATED),
        (
            Task.QUERY_RELATED,
            "### Answer: ['32']",
            "text",
            Prediction(Status.REPAIRED, related=("32",), repairs=("single-quotes",)),
        ),
        (
            Task.DETECTION,
            '{"subjects": [{"entities": [{"text": "32", "type": "DEM"}]}]}',
            "schema",
            Prediction(Status.OK, subjects=((("32", "DEM"),),)),
        ),
        (Task.QUERY_RELATED, '{"thought": "An age.", "answer": ["32"]}', "schema", RELATED),
        (Task.QUERY_RELATED, '### Answer: ["32"]', "schema", Prediction(Status.MALFORMED)),
    ],
)
def test_a_response_is_read_as_what_was_asked(
    task: Task, said: str, output: Output, prediction: Prediction
) -> None:
    assert read_response(task, Completion(said, Finish.STOP), output) == prediction


@pytest.mark.parametrize("task", [Task.DETECTION, Task.QUERY_RELATED])
@pytest.mark.parametrize(
    ("response", "status"),
    [
        (Completion("", Finish.STOP), Status.EMPTY),
        (Completion("", Finish.FILTER), Status.FILTERED),
        (Completion("", Finish.REFUSAL), Status.REFUSED),
        (Completion("I think", Finish.LENGTH), Status.TRUNCATED),
        (Completion("Lovely weather today.", Finish.STOP), Status.MALFORMED),
    ],
)
def test_a_response_without_an_answer_is_no_prediction(
    task: Task, response: Completion, status: Status
) -> None:
    assert read_response(task, response) == Prediction(status)


def test_draws_are_read_one_by_one_and_vote() -> None:
    draws = Draws(
        (
            Completion('### Answer: ["32", "Acme"]'),
            Completion("", Finish.FILTER),
            Completion("### Answer: ['32']"),
        )
    )

    assert read_response(Task.QUERY_RELATED, draws) == Prediction(
        Status.REPAIRED, related=("32",), repairs=("single-quotes",)
    )


def test_draws_of_a_schema_vote() -> None:
    draws = Draws((Completion('{"answer": ["32"]}'), Completion('### Answer: ["40"]')))

    assert read_response(Task.QUERY_RELATED, draws, "schema") == RELATED


def labelled(
    *said: str, labels_of: str = "ai4privacy", text: str | None = None, finish: Finish = Finish.STOP
) -> Prediction:
    draws = tuple(Completion(each, finish) for each in said)
    response = draws[0] if len(draws) == 1 else Draws(draws)
    return read_response(Task.DETECTION, response, labels_of=labels_of, text=text)


def test_labels_become_types_and_what_has_none_is_left_out() -> None:
    said = '{"PII": {"EMAIL": ["a@b.de"], "TITLE": ["Dr."], "CITY": ["Ulm"]}}'

    assert labelled(said) == Prediction(Status.OK, subjects=((("a@b.de", "CODE"), ("Ulm", "LOC")),))
    assert labelled('{"PII": {"TITLE": ["Dr."]}}') == Prediction(Status.OK, subjects=())


def test_one_label_may_mean_another_type_in_another_taxonomy() -> None:
    said = '{"PII": {"QUANTITY": ["2 m"]}}'

    assert labelled(said, labels_of="spacy").subjects == ((("2 m", "DEM"),),)
    assert labelled(said, labels_of="paper").subjects == ((("2 m", "QUANTITY"),),)


def test_a_label_that_is_none_stays_as_a_wrong_type() -> None:
    assert labelled('{"PII": {"PET": ["Rex"]}}') == Prediction(
        Status.REPAIRED, subjects=((("Rex", "PET"),),), repairs=("unknown-type",)
    )


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (None, {"Mia", "Ortega"}),
        ("Mia Ortega is here.", {"Mia Ortega"}),
        ("Mia and Mia Ortega", {"Mia", "Mia Ortega"}),
        ("Ortega, Mia", {"Ortega", "Mia"}),
        # What is invented has no neighbour.
        ("Mia Lee", {"Mia", "Ortega"}),
    ],
)
def test_parts_that_are_neighbours_in_the_text_are_one_value(
    text: str | None, names: set[str]
) -> None:
    said = '{"PII": {"FIRSTNAME": ["Mia"], "LASTNAME": ["Ortega"], "AGE": ["41"]}}'

    (found,) = labelled(said, text=text).subjects or ()

    assert set(found) == {*((name, "PER") for name in names), ("41", "DEM")}


def test_pieces_of_a_text_are_put_together() -> None:
    first, second = '{"PII": {"AGE": ["41"], "CITY": ["Ulm"]}}', "{'PII': {'AGE': ['41', '7']}}"

    assert labelled(first, second) == Prediction(
        Status.REPAIRED,
        subjects=((("41", "DEM"), ("Ulm", "LOC"), ("7", "DEM")),),
        repairs=("single-quotes",),
    )


def test_a_piece_without_an_answer_fails_the_text() -> None:
    assert labelled('{"PII": {"AGE": ["41"]}}', "What a day.") == Prediction(Status.MALFORMED)


@pytest.mark.parametrize("task", [Task.DETECTION, Task.MASKING])
def test_only_query_related_answers_vote(task: Task) -> None:
    with pytest.raises(ValueError, match=f"^{task} has no vote"):
        read_response(task, Draws((Completion("[]"),)))


def answers(*draws: tuple[str, ...]) -> list[Prediction]:
    return [Prediction(Status.OK, related=draw) for draw in draws]


FAILED = Prediction(Status.TRUNCATED)


@pytest.mark.parametrize(
    ("draws", "chosen"),
    [
        (answers(("a",), ("a", "b"), ("b", "c")), ("a", "b")),
        (answers(("a",), ("b",), ("c",)), ()),
        (answers((), (), ("a",)), ()),
        (answers(("a",)), ("a",)),
        # A half is no majority.
        (answers(("a",), ("b",)), ()),
        (answers(("a", "b"), ("a", "b"), ("a",), ()), ("a",)),
        # Of three draws that have an answer, two are more than half; of four, not.
        ([*answers(("a",), ("a",), ()), FAILED], ("a",)),
        ([*answers(("a",), ()), FAILED, FAILED], ()),
        ([FAILED, FAILED, *answers(("a",))], ("a",)),
        # Who names a text twice has one vote.
        (answers(("a", "a"), ()), ()),
    ],
)
def test_more_than_half_of_the_answers_choose(
    draws: list[Prediction], chosen: tuple[str, ...]
) -> None:
    assert vote(draws) == Prediction(Status.OK, related=chosen)


def test_texts_vote_as_the_scorer_compares_them_and_stand_as_first_written() -> None:
    draws = answers(("Ann\tLee", "Café"), (" Ann Lee", "CAFÉ"), ("ann lee", "Cafe\u0301"))

    assert vote(draws).related == ("Ann\tLee", "Café")


def test_without_any_answer_the_first_draw_tells_why() -> None:
    statuses = [Status.REFUSED, Status.EMPTY, Status.EMPTY]

    assert vote([Prediction(status) for status in statuses]) == Prediction(Status.REFUSED)


def test_a_repair_of_a_draw_is_one_of_the_vote() -> None:
    draws = [
        Prediction(Status.REPAIRED, related=("32",), repairs=("no-marker", "code-fence")),
        Prediction(Status.OK, related=("32",)),
        Prediction(Status.REPAIRED, related=("32",), repairs=("code-fence",)),
    ]

    assert vote(draws) == Prediction(
        Status.REPAIRED, related=("32",), repairs=("no-marker", "code-fence")
    )


drawn = st.lists(st.lists(st.sampled_from("abc"), max_size=3), min_size=1, max_size=6)


@given(drawn, st.randoms(use_true_random=False))
def test_the_order_of_the_draws_chooses_nothing(draws: list[list[str]], random: Random) -> None:
    before = vote(answers(*map(tuple, draws))).related
    random.shuffle(draws)

    assert set(vote(answers(*map(tuple, draws))).related or ()) == set(before or ())


@given(drawn)
def test_what_every_draw_names_is_chosen_and_what_none_names_is_not(
    draws: list[list[str]],
) -> None:
    chosen = set(vote(answers(*map(tuple, draws))).related or ())

    assert set.intersection(*map(set, draws)) <= chosen <= set.union(*map(set, draws))


def test_masking_has_no_response_of_its_own() -> None:
    with pytest.raises(ValueError, match="compose it from the other two"):
        read_response(Task.MASKING, Completion("[]"))


def test_two_answers_compose() -> None:
    assert compose(DETECTED, RELATED) == Prediction(Status.OK, subjects=FOUND, related=("32",))


def test_a_repair_of_either_part_is_a_repair_of_both() -> None:
    detected = Prediction(Status.REPAIRED, subjects=FOUND, repairs=("type-alias",))
    related = Prediction(Status.REPAIRED, related=("32",), repairs=("single-quotes",))

    assert compose(detected, RELATED).status is Status.REPAIRED
    assert compose(DETECTED, related).status is Status.REPAIRED
    assert compose(detected, related).repairs == ("type-alias", "single-quotes")


CAUSED_BY_THE_MODEL = ["malformed", "truncated", "empty", "refused", "filtered"]
NEVER_ANSWERED = ["infra_error", "skipped_budget"]


@pytest.mark.parametrize("status", CAUSED_BY_THE_MODEL + NEVER_ANSWERED)
def test_a_part_without_an_answer_leaves_nothing_to_compose(status: str) -> None:
    failed = Prediction(Status(status))

    assert compose(failed, RELATED) == compose(DETECTED, failed) == failed


@pytest.mark.parametrize("caused", CAUSED_BY_THE_MODEL)
@pytest.mark.parametrize("missing", NEVER_ANSWERED)
def test_a_call_that_failed_outweighs_a_failure_of_the_model(caused: str, missing: str) -> None:
    by_model, by_call = Prediction(Status(caused)), Prediction(Status(missing))

    assert compose(by_model, by_call) == compose(by_call, by_model) == by_call


STATUSES = (
    "ok, repaired, malformed, truncated, empty, refused, filtered, infra_error, skipped_budget"
)
FULL: dict[str, Any] = {
    "id": "s1",
    "subjects": [[{"text": "Ann Lee", "type": "PER"}], []],
    "related": ["32"],
    "status": "ok",
}


def read(folder: Path, *records: object, ids: list[str] | None = None) -> dict[str, Prediction]:
    return read_predictions(write_lines(folder / "answers.jsonl", records), ids or ["s1"])


@pytest.mark.parametrize(
    ("record", "prediction"),
    [
        (FULL, Prediction(Status.OK, subjects=((("Ann Lee", "PER"),), ()), related=("32",))),
        ({"id": "s1", "related": []}, Prediction(Status.OK, related=())),
        (FULL | {"subjects": None}, Prediction(Status.OK, related=("32",))),
        # Keys of a user's own.
        (
            {"id": "s1", "related": ["32"], "model": "m", "seconds": 2},
            Prediction(Status.OK, related=("32",)),
        ),
    ],
)
def test_a_line_is_read(tmp_path: Path, record: dict[str, Any], prediction: Prediction) -> None:
    assert read(tmp_path, record) == {"s1": prediction}


def test_the_order_of_the_lines_does_not_matter(tmp_path: Path) -> None:
    lines = [{"id": name, "related": [name]} for name in ("s2", "s1")]

    found = read(tmp_path, *lines, ids=["s1", "s2"])

    assert (found["s1"].related, found["s2"].related) == (("s1",), ("s2",))


@pytest.mark.parametrize("status", [s.value for s in Status if not s.answered])
def test_what_a_failure_says_is_no_answer(tmp_path: Path, status: str) -> None:
    assert read(tmp_path, FULL | {"status": status})["s1"] == Prediction(Status(status))
    assert read(tmp_path, {"id": "s1", "status": status})["s1"] == Prediction(Status(status))


@pytest.mark.parametrize(
    ("record", "what"),
    [
        ({"related": []}, "record: 'id' is missing"),
        ({"id": 1, "related": []}, "record: 'id' must be a string, not a whole number"),
        ({"id": "s7", "related": []}, "id 's7' is no sample of the dataset"),
        ({"id": "s0", "related": []}, "id 's0' is already on line 1"),
        (
            {"id": "s1", "relatd": ["32"]},
            "prediction 's1': unknown key 'relatd'; did you mean 'related'?",
        ),
        (
            {"id": "s1"},
            "prediction 's1': has neither 'subjects' nor 'related' nor 'rewritten' (status 'ok')",
        ),
        (
            FULL | {"status": "okay"},
            f"prediction 's1': unknown status 'okay'; did you mean 'ok'? (allowed: {STATUSES})",
        ),
        (FULL | {"status": None}, "prediction 's1': 'status' must be a string, not null"),
        (FULL | {"related": "32"}, "prediction 's1': 'related' must be a list, not a string"),
        (FULL | {"related": [32]}, "prediction 's1': 'related' must be a list of strings"),
        (
            FULL | {"subjects": {"A": []}},
            "prediction 's1': 'subjects' must be a list, not an object",
        ),
        (
            FULL | {"subjects": [{"text": "Ann", "type": "PER"}]},
            "prediction 's1', subjects[0] must be a list of entities",
        ),
        (
            FULL | {"subjects": [["Ann"]]},
            "prediction 's1', subjects[0]: entities[0] must be an object, not a string",
        ),
        (
            FULL | {"subjects": [[], [{"text": "Ann"}]]},
            "prediction 's1', subjects[1]: 'type' is missing",
        ),
        ({"id": "s1", "related": ["32"]}, "prediction 's1' has no 'subjects', though 's0' has"),
        ({"id": "s1", "subjects": []}, "prediction 's1' has no 'related', though 's0' has"),
        (["Ann"], "a line must be a JSON object, not a list"),
    ],
)
def test_a_broken_line_is_named_and_its_text_is_not_told(
    tmp_path: Path, record: object, what: str
) -> None:
    with pytest.raises(InputFileError) as caught:
        read(tmp_path, FULL | {"id": "s0"}, record, ids=["s0", "s1"])

    assert str(caught.value) == f"{tmp_path / 'answers.jsonl'}:2: {what}"


def test_samples_without_a_line_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputFileError) as one:
        read(tmp_path, FULL, ids=["s1", "s2"])
    with pytest.raises(InputFileError) as several:
        read(tmp_path, FULL, ids=["s0", "s1", "s2", "s3"])

    path = tmp_path / "answers.jsonl"
    assert str(one.value) == f"{path}: no prediction for sample 's2'"
    others = "and 2 more"
    assert str(several.value) == f"{path}: no prediction for sample 's0' {others}"


@pytest.mark.parametrize(
    ("prediction", "tasks"),
    [
        (Prediction(Status.OK, subjects=()), [Task.DETECTION]),
        (Prediction(Status.REPAIRED, related=()), [Task.QUERY_RELATED]),
        (
            Prediction(Status.OK, subjects=(), related=()),
            [Task.DETECTION, Task.QUERY_RELATED, Task.MASKING],
        ),
        (Prediction(Status.OK, rewritten="She."), [Task.REWRITE]),
        (Prediction(Status.OK, subjects=(), related=(), rewritten="She."), list(Task)),
        (Prediction(Status.REFUSED), []),
    ],
)
def test_the_tasks_that_a_file_answers(prediction: Prediction, tasks: list[Task]) -> None:
    failed = Prediction(Status.INFRA_ERROR)

    assert predicted_tasks({"s0": failed, "s1": prediction}) == tasks


def test_all_bad_lines_are_listed_at_once(tmp_path: Path) -> None:
    with pytest.raises(InputFileError) as caught:
        read(tmp_path, FULL | {"id": "s9"}, FULL, FULL, {"id": "s2", "status": "fine"})

    assert str(caught.value) == (
        f"{tmp_path / 'answers.jsonl'}: 3 lines cannot be read\n"
        "  line 1: id 's9' is no sample of the dataset\n"
        "  line 3: id 's1' is already on line 2\n"
        f"  line 4: prediction 's2': unknown status 'fine' (allowed: {STATUSES})"
    )


def test_a_file_is_read_line_by_line_in_whatever_order(tmp_path: Path) -> None:
    lines = [FULL | {"id": f"s{n}", "related": [str(n)]} for n in range(9)]
    file = PredictionsFile(write_lines(tmp_path / "answers.jsonl", lines))

    file.require(dict.fromkeys(f"s{n}" for n in range(9)))

    assert [file[f"s{n}"].related for n in (7, 0, 8)] == [("7",), ("0",), ("8",)]


def test_a_line_that_changes_under_the_reader_is_told(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "answers.jsonl", [FULL])
    file = PredictionsFile(path)
    path.write_text("{")

    with pytest.raises(InputFileError, match=r"answers\.jsonl:1: not valid JSON"):
        file["s1"]


@pytest.mark.parametrize(
    ("types", "named"), [([], True), (["PER"], True), ([""], False), (["", "PER"], True)]
)
def test_whether_types_are_named(types: list[str], named: bool) -> None:
    subjects = tuple((("Ann", pii_type),) for pii_type in types)

    assert names_types({"s1": Prediction(Status.OK, subjects=subjects)}) is named


def test_a_type_of_null_is_read_as_none_and_written_so(tmp_path: Path) -> None:
    untyped = FULL | {"subjects": [[{"text": "Ann Lee", "type": None}]]}
    found = read(tmp_path, untyped)
    assert found["s1"].subjects == ((("Ann Lee", ""),),)

    write_predictions(tmp_path / "written.jsonl", found)
    assert '{"text": "Ann Lee", "type": null}' in (tmp_path / "written.jsonl").read_text()


def test_a_file_without_answers_answers_no_task() -> None:
    assert predicted_tasks({}) == []


def answered(part: str) -> st.SearchStrategy[Prediction]:
    entities = st.tuples(st.text(), st.text(max_size=4))
    subjects = st.lists(st.lists(entities, max_size=2).map(tuple), max_size=2).map(tuple)
    related = st.lists(st.text(), max_size=2).map(tuple)
    return st.builds(
        Prediction,
        st.sampled_from([Status.OK, Status.REPAIRED]),
        subjects=st.none() if part == "related" else subjects,
        related=st.none() if part == "subjects" else related,
    )


failures = st.sampled_from([s for s in Status if not s.answered]).map(Prediction)
files = st.sampled_from(["subjects", "related", "both"]).flatmap(
    lambda part: st.dictionaries(st.text(max_size=3), answered(part) | failures, max_size=3)
)


@given(files)
def test_what_is_written_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, predictions: dict[str, Prediction]
) -> None:
    path = tmp_path_factory.mktemp("predictions") / "answers.jsonl"
    write_predictions(path, predictions)

    assert read_predictions(path, list(predictions)) == predictions


def test_half_a_surrogate_pair_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    predictions = {"s1": Prediction(Status.OK, related=("\ud83d 32", "\udc00"))}

    write_predictions(path, predictions)

    assert read_predictions(path, ["s1"]) == predictions


def test_a_rewritten_text_is_read_back_and_shown_by_nothing(tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    predictions = {"s1": Prediction(Status.OK, rewritten="The tenant is 32.")}

    write_predictions(path, predictions)

    assert read_predictions(path, ["s1"]) == predictions
    assert "tenant" not in repr(predictions)
