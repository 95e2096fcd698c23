from __future__ import annotations

import pytest

from pii_bench.models.base import Finish
from pii_bench.prompting.parsing.answers import ParsedDetection, Subject
from pii_bench.prompting.parsing.detection import parse_detection
from pii_bench.tasks import Status

Subjects = tuple[Subject, ...]
Repairs = tuple[str, ...]

ANN = ("Ann Lee", "PER")
BOB = ("Bob Ray", "PER")
AGE = ("32", "DEM")
ONE: Subjects = ((ANN, AGE),)
TWO: Subjects = ((ANN,), (BOB,))

EXPECTED_FORM: list[tuple[str, str, Subjects]] = [
    ("one subject", 'Subject1{"Ann Lee": "PER", "32": "DEM"}', ONE),
    ("two subjects", 'Subject1{"Ann Lee": "PER"}\n\nSubject2{"Bob Ray": "PER"}\n', TWO),
    ("braces around numbers", 'Subject{1}{"Ann Lee": "PER"}\nSubject{2}{"Bob Ray": "PER"}', TWO),
    ("nothing in a subject", "Subject1{}", ((),)),
    ("a key twice", 'Subject1{"A": "PER", "A": "LOC"}', ((("A", "PER"), ("A", "LOC")),)),
    ("pretty-printed", 'Subject1{\n  "Ann Lee": "PER",\n  "32": "DEM"\n}', ONE),
    ("a label inside a text", 'Subject1{"Subject2{}": "CODE"}', ((("Subject2{}", "CODE"),),)),
    (
        "after a thought",
        '<think>Subject1{"x": "LOC"}</think>\nSubject1{"Ann Lee": "PER"}',
        ((ANN,),),
    ),
]

LABELS: list[tuple[str, str, Subjects, Repairs]] = [
    ("space and colon", 'Subject 1: {"Ann Lee": "PER", "32": "DEM"}', ONE, ("label-variant",)),
    ("lower case", 'subject_1 {"Ann Lee": "PER", "32": "DEM"}', ONE, ("label-variant",)),
    ("one line", 'Subject1{"Ann Lee": "PER"} Subject2{"Bob Ray": "PER"}', TWO, ("label-variant",)),
    (
        "a list of them",
        '[Subject1{"Ann Lee": "PER"}, Subject2{"Bob Ray": "PER"}]',
        TWO,
        ("unquoted", "other-shape"),
    ),
    ("none", '{"Ann Lee": "PER"}\n{"Bob Ray": "PER"}', TWO, ("no-label",)),
    (
        "twice the same",
        'Subject1{"Ann Lee": "PER"}\nSubject1{"32": "DEM"}',
        ONE,
        ("merged-label",),
    ),
    (
        "mentioned in prose",
        'I found Subject 1 and Subject 2:\nSubject1{"Ann Lee": "PER", "32": "DEM"}\nDone.',
        ONE,
        ("prose-around",),
    ),
    (
        "prose with brackets",
        '[PER_1] speaks of {x}.\nSubject1{"Ann Lee": "PER", "32": "DEM"}',
        ONE,
        ("prose-around",),
    ),
    ("fence", '```\nSubject1{"Ann Lee": "PER", "32": "DEM"}\n```', ONE, ("code-fence",)),
]

DRAFT = 'Subject1{"Cy": "PER"}\nSubject2{"Di": "PER"}\n'
VERSIONS: list[tuple[str, str, Subjects, Repairs]] = [
    (
        "the last counts",
        f'{DRAFT}Let me correct that.\nSubject1{{"Ann Lee": "PER"}}\nSubject2{{"Bob Ray": "PER"}}',
        TWO,
        ("prose-around", "last-group"),
    ),
    (
        "an unclosed last one does not",
        'Subject1{"Ann Lee": "PER", "32": "DEM"}\nBetter:\nSubject1{"Ann Lee": "PER", "3',
        ONE,
        ("prose-around", "last-group"),
    ),
    (
        "no new version without a first label",
        'Subject1{"Ann Lee": "PER"}\nAnd her friend:\nSubject2{"Bob Ray": "PER"}',
        TWO,
        ("prose-around",),
    ),
]

LINES: list[tuple[str, str, Subjects, Repairs]] = [
    (
        "bullets",
        '**Subject 1**\n- Ann Lee: PER\n- 32 (DEM)\n\n**Subject 2**:\n- "Bob Ray" (PER)\n',
        ((ANN, AGE), (BOB,)),
        ("label-variant", "prose-around", "bullet-list", "other-shape"),
    ),
    (
        "a comma in a bullet",
        "Subject 1:\n* **Lee, Ray & Co** — ORG",
        ((("Lee, Ray & Co", "ORG"),),),
        ("label-variant", "bullet-list"),
    ),
    (
        "type first",
        "Subject1\n- PER: Ann Lee\n- Demographic: 32",
        ONE,
        ("label-variant", "bullet-list", "type-first", "type-alias"),
    ),
    (
        "one line",
        "Subject 1: Ann Lee (PER), 32 (DEM)",
        ONE,
        ("label-variant", "bullet-list", "unquoted"),
    ),
    (
        "no braces",
        'Subject1: "Ann Lee": "PER", "32": "DEM"',
        ONE,
        ("label-variant", "bullet-list"),
    ),
    ("no label", "- Ann Lee: PER\n- 32: DEM", ONE, ("no-label", "bullet-list")),
]

SHAPES: list[tuple[str, str, Subjects, Repairs]] = [
    (
        "one object",
        '{"Subject1": {"Ann Lee": "PER"}, "Subject2": {"Bob Ray": "PER"}}',
        TWO,
        ("other-shape",),
    ),
    (
        "subjects of records",
        (
            '{"subjects": [{"id": 1, "entities": [{"text": "Ann Lee", "type": "PER"}]},'
            ' {"id": 2, "entities": [{"text": "Bob Ray", "type": "PER"}]}]}'
        ),
        TWO,
        ("no-label", "non-string-item", "other-shape"),
    ),
    (
        "records of one subject",
        '[{"text": "Ann Lee", "type": "PER"}, {"text": "32", "type": "DEM"}]',
        ONE,
        ("no-label", "other-shape"),
    ),
    ("pairs", '[["Ann Lee", "PER"], ["32", "DEM"]]', ONE, ("no-label", "other-shape")),
    (
        "tuples after a label",
        "Subject1: [('Ann Lee', 'PER'), ('32', 'DEM')]",
        ONE,
        ("label-variant", "single-quotes", "round-brackets", "other-shape"),
    ),
    (
        "a list of lists",
        '[[["Ann Lee", "PER"]], [["Bob Ray", "PER"]]]',
        TWO,
        ("no-label", "other-shape"),
    ),
    (
        "a list of objects",
        '[{"Ann Lee": "PER"}, {"Bob Ray": "PER"}]',
        TWO,
        ("no-label", "other-shape"),
    ),
    ("type first", 'Subject1{"PER": ["Ann Lee"], "DEM": "32"}', ONE, ("type-first",)),
    ("attributes", 'Subject1{"Ann Lee": {"type": "PER"}, "32": "DEM"}', ONE, ("other-shape",)),
    ("bare keys", "Subject1{Ann Lee: PER, 32: DEM}", ONE, ("unquoted", "non-string-item")),
    (
        "a colon in a bare key",
        "Subject1{10:30: DATETIME}",
        ((("10:30", "DATETIME"),),),
        ("unquoted",),
    ),
    (
        "full-width",
        'Subject1｛"Ann Lee"："PER"，"32"："DEM"｝',
        ONE,
        ("label-variant", "full-width"),
    ),
    ("arrows", 'Subject1{"Ann Lee" -> "PER", "32" => "DEM"}', ONE, ("separator",)),
    (
        "single quotes",
        "Subject1{'St. Brendan's': 'ORG'}",
        ((("St. Brendan's", "ORG"),),),
        ("single-quotes", "nested-quotes"),
    ),
]

TYPES: list[tuple[str, str, str, Repairs]] = [
    ("lower case", '"per"', "PER", ("type-alias",)),
    ("spelt out", '"Organization"', "ORG", ("type-alias",)),
    ("two words", '"Date/Time"', "DATETIME", ("type-alias",)),
    ("three words", '"identifier code"', "CODE", ("type-alias",)),
    ("explained", '"LOC (city)"', "LOC", ("type-alias",)),
    ("a list", '["LOC", "ORG"]', "LOC", ("type-list",)),
    ("unknown", '" job title "', "JOB TITLE", ("unknown-type",)),
    ("blank", '""', "", ("missing-type",)),
]

REPAIRED = [
    *((f"labels: {name}", *rest) for name, *rest in LABELS),
    *((f"versions: {name}", *rest) for name, *rest in VERSIONS),
    *((f"lines: {name}", *rest) for name, *rest in LINES),
    *((f"shape: {name}", *rest) for name, *rest in SHAPES),
]


@pytest.mark.parametrize(
    ("answer", "subjects"), [pytest.param(*row[1:], id=row[0]) for row in EXPECTED_FORM]
)
@pytest.mark.parametrize("finish", [Finish.STOP, Finish.LENGTH])
def test_the_expected_form_is_ok(answer: str, subjects: Subjects, finish: Finish) -> None:
    assert parse_detection(answer, finish) == ParsedDetection(subjects, Status.OK)


@pytest.mark.parametrize(
    ("answer", "subjects", "repairs"), [pytest.param(*row[1:], id=str(row[0])) for row in REPAIRED]
)
def test_other_forms_are_repaired(answer: str, subjects: Subjects, repairs: Repairs) -> None:
    assert parse_detection(answer) == ParsedDetection(subjects, Status.REPAIRED, repairs)


@pytest.mark.parametrize(
    ("written", "meant", "repairs"), [pytest.param(*row[1:], id=row[0]) for row in TYPES]
)
def test_types_are_read_as_what_they_mean(written: str, meant: str, repairs: Repairs) -> None:
    parsed = parse_detection(f'Subject1{{"x": {written}}}')
    assert parsed == ParsedDetection(((("x", meant),),), Status.REPAIRED, repairs)


def test_texts_without_types_keep_an_empty_one() -> None:
    parsed = parse_detection('Subject1["Ann Lee", "32 years"]')
    assert parsed.subjects == ((("Ann Lee", ""), ("32 years", "")),)
    assert parsed.repairs == ("label-variant", "other-shape", "missing-type")


@pytest.mark.parametrize("answer", ["[]", "{}", "None", "No PII found."])
def test_an_explicit_nothing_has_no_subjects(answer: str) -> None:
    assert parse_detection(answer) == ParsedDetection((), Status.REPAIRED, ("explicit-none",))


def test_a_subject_with_nothing_is_a_subject() -> None:
    parsed = parse_detection('Subject1: None\nSubject2: {"Bob Ray": "PER"}')
    assert parsed.subjects == ((), (BOB,))
    assert parsed.repairs == ("label-variant", "explicit-none")


@pytest.mark.parametrize(
    ("answer", "subjects"),
    [
        ('Subject1{"Ann Lee": "PER", "32": "DEM", "Ber', ONE),
        ('Subject1{"Ann Lee": "PER", "32": "DEM", "Berlin": "LO', ONE),
        ('Subject1{"Ann Lee": "PER", "32": "DEM", "Berlin"', ONE),
        ('Subject1{"Ann Lee": "PER", "32": "DEM"', ONE),
        ('{"Subject1": {"Ann Lee": "PER", "32": "DEM", "Berlin": LO', ONE),
        ('Subject1{"Ann Lee": "PER", "32": "DEM"}\nSubject2{', ONE),
    ],
)
def test_a_cut_is_repaired_unless_the_length_was_spent(answer: str, subjects: Subjects) -> None:
    parsed = parse_detection(answer)
    assert (parsed.subjects, parsed.status) == (subjects, Status.REPAIRED)
    assert parse_detection(answer, Finish.LENGTH) == ParsedDetection(None, Status.TRUNCATED)


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param("Let me read the text. The first speaker", id="before the answer"),
        pytest.param('Subject1{"Ann Lee": "PER"}\nSubject2', id="after a label"),
        pytest.param("Subject 1\n- Ann Lee: PER\n- 3", id="in bullets"),
        pytest.param("- Ann Lee: PER\n- 32: D", id="in bullets without a label"),
    ],
)
def test_an_unfinished_answer_of_full_length_is_truncated(answer: str) -> None:
    assert parse_detection(answer, Finish.LENGTH) == ParsedDetection(None, Status.TRUNCATED)


def test_a_subject_left_open_ends_at_the_next_label() -> None:
    parsed = parse_detection('Subject1{"Ann Lee": "PER"\nSubject2{"Bob Ray": "PER"}')
    assert parsed == ParsedDetection(TWO, Status.REPAIRED, ("close-open",))


@pytest.mark.parametrize(
    "answer", ["The text is about two nurses.", "[PER_1] likes {x}.", "Subject1{"]
)
def test_an_answer_without_entities_is_malformed(answer: str) -> None:
    assert parse_detection(answer) == ParsedDetection(None, Status.MALFORMED)
