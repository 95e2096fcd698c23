from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pii_bench.analysis.report.samples import Answers, Record, Vocabulary, encode_sample
from pii_bench.masking import mask
from pii_bench.runs.responses import compose
from pii_bench.systems.predictions import Prediction, Subjects
from pii_bench.tasks import Status, Task
from pii_bench.taxonomy import PiiType
from tests.builders import make_sample

ANN = (("Ann Lee", "PER"), ("32", "DEM"))
OK, REPAIRED, REFUSED, INFRA_ERROR = (
    list(Status).index(each)
    for each in (Status.OK, Status.REPAIRED, Status.REFUSED, Status.INFRA_ERROR)
)
NOT_CHOSEN, NOT_RELEVANT, HALLUCINATED = 3, 4, 6
TOO_MUCH, LACKING = 0, 1


def answers(
    subjects: Subjects | None = (ANN,),
    related: tuple[str, ...] | None = ("32",),
    *,
    names_subjects: bool = True,
) -> Answers:
    """A run of one sample, `s1`; what is None was never asked."""
    found = Prediction(Status.OK, subjects=subjects)
    chosen = Prediction(Status.OK, subjects=subjects, related=related)
    by_task = {}
    if subjects is not None:
        by_task[Task.DETECTION] = {"s1": found}
    if related is not None:
        by_task[Task.QUERY_RELATED] = {"s1": chosen}
    if subjects is not None and related is not None:
        by_task[Task.MASKING] = {"s1": compose(found, chosen)}
    return Answers(names_subjects, by_task)


def rewriting(text: str | None, status: Status = Status.OK) -> Answers:
    answer = Prediction(status, rewritten=text)
    return Answers(names_subjects=False, by_task={Task.REWRITE: {"s1": answer}})


def encoded(run: Answers, **changes: Any) -> tuple[Record, Record, Vocabulary]:
    vocabulary = Vocabulary()
    sample, (answer,) = encode_sample(make_sample("s1", **changes), [run], vocabulary)
    assert answer is not None
    return sample, answer, vocabulary


def test_a_sample_has_its_texts_once_and_the_rest_as_numbers() -> None:
    sample, answer, vocabulary = encoded(answers())

    assert sample == {
        "id": "s1",
        "d": "Ann Lee is 32.",
        "q": "Am I old?",
        "s": ["A"],
        "g": [[0, 0, 0, 0, 0, [0, 7]], [1, 4, 1, 0, 1, [11, 13]]],
        "t": [[0, 7], [11, 13]],
    }
    assert answer == {
        "s": [OK, OK, OK, None],
        "f": [[1, 1, 1, 1, 1], [1, 1, 1, 1], [1, 1, 1, 1, None, 1, 1, 1, 0], None],
        "e": [[], []],
        "d": [[0, 0, 1, 4]],
        "r": [1],
        "m": [0, 7, 0],
    }
    assert list(vocabulary.types) == list(PiiType)
    assert list(vocabulary.categories) == ["Full Name", "Age"]
    assert list(vocabulary.tags) == ["<Full Name>"]


def test_without_texts_there_are_ids_and_figures_only() -> None:
    runs = [answers(), rewriting("Ann Lee.")]
    runs.append(Answers(names_subjects=True, by_task={}))
    sample, (answer, rewritten, unasked) = encode_sample(make_sample("s1"), runs, None)

    assert sample == {"id": "s1"}
    assert unasked is None
    assert answer is not None
    assert answer.keys() == {"s", "f", "e"}
    assert rewritten is not None
    assert rewritten.keys() == {"s", "f", "e", "l"}
    assert rewritten["l"] == [1, 0, 0]


def test_places_are_counted_in_utf_16() -> None:
    subjects = [{"id": "A", "entities": [{"text": "32", "type": "DEM", "spans": [[3, 5]]}]}]

    sample, answer, _ = encoded(
        answers(((("32", "DEM"),),), ()), description="😀, 32 😀.", subjects=subjects
    )

    assert sample["t"] == [[4, 6]]
    assert sample["g"][0][-1] == [4, 6]
    assert answer["m"] == [4, 6, 0]


def test_a_text_that_stands_nowhere_is_itself() -> None:
    sample, answer, _ = encoded(answers((ANN,), ("33",)))

    assert sample["t"] == [[0, 7], [11, 13], "33"]
    assert answer["r"] == [2]
    assert answer["e"][0] == [NOT_CHOSEN, LACKING, 1, HALLUCINATED, TOO_MUCH, 1]


def test_texts_that_the_scorer_takes_as_one_have_one_number() -> None:
    found = (("Ann\n Lee", "per"), ("32", "AGE"))
    answered = answers((found,), ("32", " 32 ", " "))
    sample, answer, vocabulary = encoded(answered, description="Ann Lee is 32. 32!")

    # A text is marked wherever it occurs, but gold where it is annotated.
    assert sample["t"] == [[0, 7], [11, 13, 15, 17]]
    assert sample["g"][1][-1] == [11, 13]
    assert answer["d"] == [[0, 0, 1, 7]]
    assert answer["r"] == [1]
    # Unknown types get numbers behind ours.
    assert list(vocabulary.types)[7:] == ["AGE"]


def test_foreign_samples_need_neither_spans_nor_categories() -> None:
    subjects = [{"id": "A", "entities": [{"text": "32", "type": "DEM"}]}]

    sample, _, _ = encoded(answers(), subjects=subjects)

    assert sample["g"] == [[0, 4, -1, 0, 1, [11, 13]]]


def test_what_depends_on_subjects_is_absent_where_none_are_named() -> None:
    _, answer, _ = encoded(answers(names_subjects=False))

    assert answer["f"][0] == [None, None, None, None, 1]


def test_a_run_without_detection_has_no_masked_text() -> None:
    _, answer, _ = encoded(answers(None))

    assert answer["s"] == [None, OK, None, None]
    assert answer["f"] == [None, [1, 1, 1, 1], None, None]
    assert answer.keys() == {"s", "f", "e", "r"}


def test_failures_of_the_model_score_0_and_of_the_network_nothing() -> None:
    refused, lost = Prediction(Status.REFUSED), Prediction(Status.INFRA_ERROR)
    run = Answers(
        names_subjects=True,
        by_task={Task.DETECTION: {"s1": lost}, Task.QUERY_RELATED: {"s1": refused}},
    )

    _, answer, _ = encoded(run)

    assert answer == {
        "s": [INFRA_ERROR, REFUSED, None, None],
        "f": [None, [0, 0, 0, 0], None, None],
        "e": [[7, LACKING, 1], []],
    }


def test_a_sample_without_a_query_has_no_answer_to_one() -> None:
    sample, answer, _ = encoded(answers(), query=None, related=[])

    assert sample["q"] is None
    assert answer["s"] == [OK, None, None, None]
    assert answer.keys() == {"s", "f", "e", "d"}


def test_figures_are_rounded() -> None:
    _, answer, _ = encoded(answers((ANN,), ("32", "Ann Lee", "is")))

    assert answer["f"][1][:3] == [0.5, 0.3333, 1]
    assert answer["e"][0] == [NOT_RELEVANT, TOO_MUCH, 2]


WORDS = st.sampled_from(
    ["a", "b", "ab", "\u00e9", "e\u0301", "😀", "<Person>", " ", "\n", "\ud83d", "\ude00", "32"]
)
WORDING = st.lists(WORDS, max_size=12).map("".join)


@given(
    description=WORDING.filter(str.strip),
    found=st.lists(WORDING, max_size=4),
    needed=st.lists(WORDING, max_size=2),
)
def test_tags_put_at_their_places_give_the_masked_text(
    description: str, found: list[str], needed: list[str]
) -> None:
    subjects = (tuple((text, "PER") for text in found),)
    run = answers(subjects, tuple(needed))

    _, answer, vocabulary = encoded(run, description=description, subjects=[], related=[])

    units = description.encode("utf-16-le", "surrogatepass")
    tags = list(vocabulary.tags)
    masked, end = b"", 0
    for start, stop, tag in zip(*[iter(answer["m"])] * 3, strict=True):
        masked += units[2 * end : 2 * start] + tags[tag].encode("utf-16-le")
        end = stop
    masked += units[2 * end :]
    expected = mask(description, subjects[0], needed).text
    assert masked == expected.encode("utf-16-le", "surrogatepass")


def test_a_rewriting_stands_next_to_the_original_with_what_it_tells() -> None:
    sample, answer, _ = encoded(rewriting("\U0001f600 Ann is thirty-two."))

    assert [sample["d"][slice(*places)] for places in sample["t"]] == ["Ann Lee", "32"]
    part, restated = 2, 1
    assert answer == {
        "s": [None, None, None, OK],
        # The name is not protected, so nothing is hidden; the age is there in another form.
        "f": [None, None, None, [0, 0, 0, 0, None, 0, 0, 1, None]],
        "e": [[], []],
        "l": [0, 0, 1],
        # Places are UTF-16 code units: the face has two.
        "w": ["\U0001f600 Ann is thirty-two.", [[0, part, [3, 6]], [1, restated, [10, 20]]]],
    }


def test_a_rewriting_that_failed_has_no_text() -> None:
    _, answer, _ = encoded(rewriting(None, Status.REFUSED))

    assert answer["s"] == [None, None, None, REFUSED]
    assert answer["f"][3] == [0, 0, 0, 0, None, 0, 0, 0, None]
    assert answer.keys() == {"s", "f", "e"}
