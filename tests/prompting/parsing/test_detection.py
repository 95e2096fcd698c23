from __future__ import annotations

import pytest

from pii_bench.models.base import Finish
from pii_bench.prompting.parsing.answers import Parsed, Subject
from pii_bench.prompting.parsing.detection import parse_detection
from pii_bench.tasks import Status

Subjects = tuple[Subject, ...]

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
    ("two, pretty-printed", 'Subject1{\n"Ann Lee": "PER"}\n\nSubject2{\n"Bob Ray": "PER"}\n', TWO),
    ("indented", ' Subject1{"Ann Lee": "PER"}\n Subject2{"Bob Ray": "PER"}', TWO),
    ("a label inside a text", 'Subject1{"Subject2{}": "CODE"}', ((("Subject2{}", "CODE"),),)),
    (
        "after a thought",
        '<think>Subject1{"x": "LOC"}</think>\nSubject1{"Ann Lee": "PER"}',
        ((ANN,),),
    ),
]

LABELS: list[tuple[str, str, Subjects]] = [
    ("space and colon", 'Subject 1: {"Ann Lee": "PER", "32": "DEM"}', ONE),
    ("indented, pretty-printed", ' Subject1{\n"Ann Lee": "PER",\n"32": "DEM"}', ONE),
    ("lower case", 'subject_1 {"Ann Lee": "PER", "32": "DEM"}', ONE),
    ("one line", 'Subject1{"Ann Lee": "PER"} Subject2{"Bob Ray": "PER"}', TWO),
    ("a list of them", '[Subject1{"Ann Lee": "PER"}, Subject2{"Bob Ray": "PER"}]', TWO),
    ("none", '{"Ann Lee": "PER"}\n{"Bob Ray": "PER"}', TWO),
    ("twice the same", 'Subject1{"Ann Lee": "PER"}\nSubject1{"32": "DEM"}', ONE),
    (
        "mentioned in prose",
        'I found Subject 1 and Subject 2:\nSubject1{"Ann Lee": "PER", "32": "DEM"}\nDone.',
        ONE,
    ),
    ("prose with brackets", '[PER_1] speaks of {x}.\nSubject1{"Ann Lee": "PER", "32": "DEM"}', ONE),
    ("fence", '```\nSubject1{"Ann Lee": "PER", "32": "DEM"}\n```', ONE),
]

DRAFT = 'Subject1{"Cy": "PER"}\nSubject2{"Di": "PER"}\n'
VERSIONS: list[tuple[str, str, Subjects]] = [
    (
        "the last counts",
        f'{DRAFT}Let me correct that.\nSubject1{{"Ann Lee": "PER"}}\nSubject2{{"Bob Ray": "PER"}}',
        TWO,
    ),
    (
        "an unclosed last one does not",
        'Subject1{"Ann Lee": "PER", "32": "DEM"}\nBetter:\nSubject1{"Ann Lee": "PER", "3',
        ONE,
    ),
    (
        "no new version without a first label",
        'Subject1{"Ann Lee": "PER"}\nAnd her friend:\nSubject2{"Bob Ray": "PER"}',
        TWO,
    ),
]

LINES: list[tuple[str, str, Subjects]] = [
    (
        "bullets",
        '**Subject 1**\n- Ann Lee: PER\n- 32 (DEM)\n\n**Subject 2**:\n- "Bob Ray" (PER)\n',
        ((ANN, AGE), (BOB,)),
    ),
    (
        "a comma in a bullet",
        "Subject 1:\n* **Lee, Ray & Co** — ORG",
        ((("Lee, Ray & Co", "ORG"),),),
    ),
    ("type first", "Subject1\n- PER: Ann Lee\n- Demographic: 32", ONE),
    ("one line", "Subject 1: Ann Lee (PER), 32 (DEM)", ONE),
    ("no braces", 'Subject1: "Ann Lee": "PER", "32": "DEM"', ONE),
    ("no label", "- Ann Lee: PER\n- 32: DEM", ONE),
]

SHAPES: list[tuple[str, str, Subjects]] = [
    ("one object", '{"Subject1": {"Ann Lee": "PER"}, "Subject2": {"Bob Ray": "PER"}}', TWO),
    (
        "subjects of records",
        (
            '{"subjects": [{"id": 1, "entities": [{"text": "Ann Lee", "type": "PER"}]},'
            ' {"id": 2, "entities": [{"text": "Bob Ray", "type": "PER"}]}]}'
        ),
        TWO,
    ),
    (
        "records of one subject",
        '[{"text": "Ann Lee", "type": "PER"}, {"text": "32", "type": "DEM"}]',
        ONE,
    ),
    ("pairs", '[["Ann Lee", "PER"], ["32", "DEM"]]', ONE),
    ("tuples after a label", "Subject1: [('Ann Lee', 'PER'), ('32', 'DEM')]", ONE),
    ("a list of lists", '[[["Ann Lee", "PER"]], [["Bob Ray", "PER"]]]', TWO),
    ("a list of objects", '[{"Ann Lee": "PER"}, {"Bob Ray": "PER"}]', TWO),
    ("type first", 'Subject1{"PER": ["Ann Lee"], "DEM": "32"}', ONE),
    ("attributes", 'Subject1{"Ann Lee": {"type": "PER"}, "32": "DEM"}', ONE),
    ("bare keys", "Subject1{Ann Lee: PER, 32: DEM}", ONE),
    ("a colon in a bare key", "Subject1{10:30: DATETIME}", ((("10:30", "DATETIME"),),)),
    ("full-width", 'Subject1｛"Ann Lee"："PER"，"32"："DEM"｝', ONE),
    ("arrows", 'Subject1{"Ann Lee" -> "PER", "32" => "DEM"}', ONE),
    ("single quotes", "Subject1{'St. Brendan's': 'ORG'}", ((("St. Brendan's", "ORG"),),)),
]

TYPES: list[tuple[str, str, str]] = [
    ("lower case", '"per"', "PER"),
    ("spelt out", '"Organization"', "ORG"),
    ("two words", '"Date/Time"', "DATETIME"),
    ("three words", '"identifier code"', "CODE"),
    ("explained", '"LOC (city)"', "LOC"),
    ("a list", '["LOC", "ORG"]', "LOC"),
    ("unknown", '" job title "', "JOB TITLE"),
    ("blank", '""', ""),
]

OTHERS: list[tuple[str, str, Subjects]] = [
    ("no types", 'Subject1["Ann Lee", "32 years"]', ((("Ann Lee", ""), ("32 years", "")),)),
    ("nothing in one of two", 'Subject1: None\nSubject2: {"Bob Ray": "PER"}', ((), (BOB,))),
    ("an empty list", "[]", ()),
    ("an empty object", "{}", ()),
    ("None", "None", ()),
    ("a sentence for nothing", "No PII found.", ()),
]

REPAIRED = [
    *((f"labels: {name}", *rest) for name, *rest in LABELS),
    *((f"versions: {name}", *rest) for name, *rest in VERSIONS),
    *((f"lines: {name}", *rest) for name, *rest in LINES),
    *((f"shape: {name}", *rest) for name, *rest in SHAPES),
    *OTHERS,
]


@pytest.mark.parametrize(
    ("answer", "subjects"), [pytest.param(*row[1:], id=row[0]) for row in EXPECTED_FORM]
)
@pytest.mark.parametrize("finish", [Finish.STOP, Finish.LENGTH])
def test_the_expected_form_is_ok(answer: str, subjects: Subjects, finish: Finish) -> None:
    assert parse_detection(answer, finish) == Parsed(subjects, Status.OK)


@pytest.mark.parametrize(
    ("answer", "subjects"), [pytest.param(*row[1:], id=str(row[0])) for row in REPAIRED]
)
def test_other_forms_are_repaired(answer: str, subjects: Subjects) -> None:
    assert parse_detection(answer) == Parsed(subjects, Status.REPAIRED)


@pytest.mark.parametrize(("written", "meant"), [pytest.param(*row[1:], id=row[0]) for row in TYPES])
def test_types_are_read_as_what_they_mean(written: str, meant: str) -> None:
    parsed = parse_detection(f'Subject1{{"x": {written}}}')
    assert parsed == Parsed(((("x", meant),),), Status.REPAIRED)


@pytest.mark.parametrize(
    ("answer", "subjects", "cut"),
    [
        ('Subject1{"Ann Lee": "PER", "32": "DEM", "Ber', ONE, True),
        ('Subject1{"Ann Lee": "PER", "32": "DEM", "Berlin": "LO', ONE, True),
        ('Subject1{"Ann Lee": "PER", "32": "DEM", "Berlin"', ONE, True),
        ('Subject1{"Ann Lee": "PER", "32": "DEM"', ONE, True),
        (' - "Ann Lee": "PER", "32": "DEM", "Ber', ONE, True),
        ('{"Subject1": {"Ann Lee": "PER", "32": "DEM", "Berlin": LO', ONE, True),
        ('Subject1{"Ann Lee": "PER", "32": "DEM"}\nSubject2{', ONE, False),
    ],
)
def test_a_cut_is_repaired_unless_the_length_was_spent(
    answer: str, subjects: Subjects, cut: bool
) -> None:
    assert parse_detection(answer) == Parsed(subjects, Status.REPAIRED, cut)
    assert parse_detection(answer, Finish.LENGTH) == Parsed(None, Status.TRUNCATED)


@pytest.mark.parametrize(
    "answer",
    [
        "Let me read the text. The first speaker",
        'Subject1{"Ann Lee": "PER"}\nSubject2',
        "Subject 1\n- Ann Lee: PER\n- 3",
        "- Ann Lee: PER\n- 32: D",
    ],
)
def test_an_unfinished_answer_of_full_length_is_truncated(answer: str) -> None:
    assert parse_detection(answer, Finish.LENGTH) == Parsed(None, Status.TRUNCATED)


def test_a_subject_left_open_ends_at_the_next_label() -> None:
    parsed = parse_detection('Subject1{"Ann Lee": "PER"\nSubject2{"Bob Ray": "PER"}')
    assert parsed == Parsed(TWO, Status.REPAIRED, cut=True)


@pytest.mark.parametrize(
    "answer", ["The text is about two nurses.", "[PER_1] likes {x}.", "Subject1{"]
)
def test_an_answer_without_entities_is_malformed(answer: str) -> None:
    assert parse_detection(answer) == Parsed(None, Status.MALFORMED)
