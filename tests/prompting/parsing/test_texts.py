"""Lists of texts behind `### Answer:`, and texts behind `### Text:`."""

from __future__ import annotations

import pytest

from pii_bench.models.base import Finish
from pii_bench.prompting.parsing.answers import ParsedRelated, ParsedRewriting
from pii_bench.prompting.parsing.texts import parse_related, parse_rewriting
from pii_bench.tasks import Status

Texts = tuple[str, ...]

EXPECTED_FORM: list[tuple[str, str, Texts]] = [
    ("one line", '### Answer: ["Acme", "Berlin"]', ("Acme", "Berlin")),
    ("list on the next line", '### Answer:\n["Acme"]\n', ("Acme",)),
    ("pretty-printed", '### Answer: [\n  "Acme",\n  "Berlin"\n]', ("Acme", "Berlin")),
    ("empty", "### Answer: []", ()),
    ("repeats stay", '### Answer: ["Acme", "Acme"]', ("Acme", "Acme")),
    ("escapes of JSON", r'### Answer: ["caf\u00e9", "5\" pipe"]', ("café", '5" pipe')),
    (
        "thought before it",
        '### Thought:\nShe asks about [PER_1] and "pay".\n\n### Answer: ["$2,180"]',
        ("$2,180",),
    ),
    ("last marker counts", '### Answer: ["Acme"]\nNo.\n### Answer: ["Berlin"]', ("Berlin",)),
    ("a marker inside a text", '### Answer: ["### Answer: []"]', ("### Answer: []",)),
    ("a tag inside a text", '### Answer: ["<think>", "</think>"]', ("<think>", "</think>")),
]

QUOTES: list[tuple[str, str, Texts, Texts]] = [
    ("single", "['Acme', 'Berlin']", ("Acme", "Berlin"), ("single-quotes",)),
    (
        "apostrophes in single quotes",
        "['St. Brendan's Hospital', 'the nurses' station']",
        ("St. Brendan's Hospital", "the nurses' station"),
        ("single-quotes", "nested-quotes"),
    ),
    (
        "typographic",
        "[“Acme”, ‘Berlin’, «Bonn», „Köln“, 「東京」, `Oslo`]",
        ("Acme", "Berlin", "Bonn", "Köln", "東京", "Oslo"),
        ("smart-quotes",),
    ),
    ("escaped", r"[\"Acme\", \"Berlin\"]", ("Acme", "Berlin"), ("escaped-quotes",)),
    ("doubled", '[""Acme"", ""Berlin""]', ("Acme", "Berlin"), ("doubled-quotes",)),
    ("as in CSV", '["say ""hi"" now",]', ('say "hi" now',), ("doubled-quotes", "stray-comma")),
    (
        "nested",
        '["the "old" mill", "mill "old""]',
        ('the "old" mill', 'mill "old"'),
        ("nested-quotes",),
    ),
    ("unknown escape", r'["C:\Users"]', (r"C:\Users",), ("bad-escape",)),
    ("raw line break", '["Acme\nLtd"]', ("Acme\nLtd",), ("bad-escape",)),
    ("half a surrogate pair", r'["\ud83d"]', ("\ufffd",), ("lone-surrogate",)),
    ("none", "[Acme Corp, O'Brien]", ("Acme Corp", "O'Brien"), ("unquoted",)),
    ("some", '["Acme", Berlin]', ("Acme", "Berlin"), ("unquoted",)),
    ("none, amounts", "[$2,180, 10:30 AM]", ("$2,180", "10:30 AM"), ("unquoted",)),
]

PUNCTUATION: list[tuple[str, str, Texts, Texts]] = [
    ("trailing comma", '["Acme", "Berlin",]', ("Acme", "Berlin"), ("stray-comma",)),
    ("missing comma", '["Acme" "Berlin"]', ("Acme", "Berlin"), ("missing-comma",)),
    ("missing comma and space", '["Acme""Berlin"]', ("Acme", "Berlin"), ("missing-comma",)),
    ("semicolons", '["Acme"; "Berlin"]', ("Acme", "Berlin"), ("separator",)),
    ("full-width", '［"Acme"，"Berlin"］', ("Acme", "Berlin"), ("full-width",)),
    ("tuple", '("Acme", "Berlin")', ("Acme", "Berlin"), ("round-brackets",)),
    ("set", '{"Acme", "Berlin"}', ("Acme", "Berlin"), ("other-shape",)),
    ("wrong bracket", '["Acme", "Berlin"}', ("Acme", "Berlin"), ("bracket-mismatch",)),
    ("comments", '["Acme", // employer\n "Berlin"]', ("Acme", "Berlin"), ("stray-text",)),
    ("notes", '["Acme" (employer), "Berlin" - city]', ("Acme", "Berlin"), ("stray-text",)),
    ("numbers", "[32, 4.5, true]", ("32", "4.5", "true"), ("non-string-item",)),
    ("None", "[None]", (), ("non-string-item",)),
    ("dots", '["Acme", ...]', ("Acme",), ("non-string-item",)),
    ("blank", '["", "Acme"]', ("Acme",), ("blank-item",)),
]

SHAPES: list[tuple[str, str, Texts, Texts]] = [
    ("answer object", '{"answer": ["Acme"]}', ("Acme",), ("other-shape",)),
    (
        "answer object with reasons",
        '{"reasoning": ["She asks"], "entities": ["Acme"]}',
        ("Acme",),
        ("other-shape",),
    ),
    ("records", '[{"text": "Acme", "type": "ORG"}]', ("Acme",), ("other-shape",)),
    ("text to type", '{"Acme": "ORG", "32": "DEM"}', ("Acme", "32"), ("other-shape",)),
    ("label to text", '{"employer": "Acme"}', ("Acme",), ("other-shape",)),
    ("lists in a list", '[["Acme"], ["Berlin"]]', ("Acme", "Berlin"), ("other-shape",)),
    ("empty object", "{}", (), ("other-shape",)),
    (
        "brackets beyond reason",
        "[" * 30 + '"Acme"' + "]" * 30,
        ("Acme",),
        ("too-deep", "other-shape"),
    ),
    ("boxed", r'\boxed{["Acme"]}', ("Acme",), ("prose-around", "other-shape")),
]

MARKERS: list[tuple[str, str, Texts, Texts]] = [
    ("bold", '**Answer:** ["Acme"]', ("Acme",), ("marker-variant",)),
    ("bold around all", '**Answer: ["Acme"]**', ("Acme",), ("marker-variant", "prose-around")),
    ("no colon", '### Answer\n["Acme"]', ("Acme",), ("marker-variant",)),
    ("final", '## Final Answer:\n\n["Acme"]', ("Acme",), ("marker-variant",)),
    ("lower case", 'answer: ["Acme"]', ("Acme",), ("marker-variant",)),
    ("full-width colon", '### Answer： ["Acme"]', ("Acme",), ("marker-variant",)),
    ("in a sentence", 'The answer is: ["Acme"]', ("Acme",), ("marker-variant",)),
    ("in a line", '### Thought: pay. ### Answer: ["Acme"]', ("Acme",), ("marker-variant",)),
    ("none", '["Acme"]', ("Acme",), ("no-marker",)),
    (
        "none, the last list counts",
        'Options: ["Acme", "Berlin"]. [PER_1] asks about work, so: ["Acme"]',
        ("Acme",),
        ("no-marker", "prose-around"),
    ),
    ("nothing after the last", '### Answer: ["Acme"]\n### Answer:', ("Acme",), ("earlier-answer",)),
    (
        "prose after",
        '### Answer: ["Acme"]\n\nI chose "Acme" because of [work].',
        ("Acme",),
        ("prose-around",),
    ),
    (
        "prose before the list",
        '### Answer: The entities are ["Acme"].',
        ("Acme",),
        ("prose-around",),
    ),
    ("fence", '```json\n["Acme"]\n```', ("Acme",), ("code-fence", "no-marker")),
    ("fence after the marker", '### Answer:\n```\n["Acme"]\n```', ("Acme",), ("code-fence",)),
    ("byte-order mark", '\ufeff### Answer: ["Acme"]', ("Acme",), ("zero-width",)),
]

NO_BRACKETS: list[tuple[str, str, Texts, Texts]] = [
    ("commas", "### Answer: Acme, $2,180", ("Acme", "$2,180"), ("plain-text", "unquoted")),
    ("quoted", '### Answer: "Acme", "Berlin"', ("Acme", "Berlin"), ("plain-text",)),
    (
        "quoted, one a line",
        '### Answer:\n"Acme"\n"Berlin"\n\nBoth are needed.',
        ("Acme", "Berlin"),
        ("prose-around", "plain-text", "missing-comma"),
    ),
    (
        "quoted in a sentence",
        '### Answer: She needs "Acme" and "Berlin".',
        ("Acme", "Berlin"),
        ("quoted-in-prose",),
    ),
    (
        "bullets",
        "### Answer:\n- Acme\n- Smith, Lee & Co",
        ("Acme", "Smith, Lee & Co"),
        ("bullet-list",),
    ),
    (
        "numbers and bold",
        '### Answer:\n1. **Acme** - her employer\n2. "Berlin"',
        ("Acme", "Berlin"),
        ("bullet-list",),
    ),
    (
        "bullets without marker",
        "- Acme\n- Berlin",
        ("Acme", "Berlin"),
        ("no-marker", "bullet-list"),
    ),
    ("None", "### Answer: None", (), ("explicit-none",)),
    ("N/A", "### Answer: N/A", (), ("explicit-none",)),
    ("a sentence for nothing", "### Answer: No PII is needed.", (), ("explicit-none",)),
]

CUT_OFF: list[tuple[str, str, Texts]] = [
    ("in a text", '### Answer: ["Acme", "Ber', ("Acme",)),
    ("after a text", '### Answer: ["Acme", "Berlin"', ("Acme", "Berlin")),
    ("in a bare text", "### Answer: ['Acme', Ber", ("Acme",)),
]

REPAIRED = [
    *((f"quotes: {name}", f"### Answer: {body}", *rest) for name, body, *rest in QUOTES),
    *((f"punctuation: {name}", f"### Answer: {body}", *rest) for name, body, *rest in PUNCTUATION),
    *((f"shape: {name}", f"### Answer: {body}", *rest) for name, body, *rest in SHAPES),
    *((f"marker: {name}", *rest) for name, *rest in MARKERS),
    *((f"no brackets: {name}", *rest) for name, *rest in NO_BRACKETS),
]


@pytest.mark.parametrize(
    ("answer", "texts"), [pytest.param(*row[1:], id=row[0]) for row in EXPECTED_FORM]
)
@pytest.mark.parametrize("finish", [Finish.STOP, Finish.LENGTH])
def test_the_expected_form_is_ok(answer: str, texts: Texts, finish: Finish) -> None:
    assert parse_related(answer, finish) == ParsedRelated(texts, Status.OK)


@pytest.mark.parametrize(
    ("answer", "texts", "repairs"), [pytest.param(*row[1:], id=str(row[0])) for row in REPAIRED]
)
def test_other_forms_are_repaired(answer: str, texts: Texts, repairs: Texts) -> None:
    assert parse_related(answer) == ParsedRelated(texts, Status.REPAIRED, repairs)


@pytest.mark.parametrize(
    ("answer", "texts"), [pytest.param(*row[1:], id=row[0]) for row in CUT_OFF]
)
def test_a_cut_is_repaired_unless_the_length_was_spent(answer: str, texts: Texts) -> None:
    parsed = parse_related(answer, Finish.STOP)
    assert (parsed.texts, parsed.status) == (texts, Status.REPAIRED)
    assert "close-open" in parsed.repairs
    assert parse_related(answer, Finish.LENGTH) == ParsedRelated(None, Status.TRUNCATED)


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param("### Thought: she asks about", id="before the marker"),
        pytest.param('Options: ["Acme", "Berlin"]. Of these she', id="after a draft"),
        pytest.param('### Answer: ["Acme"]\n### Answer:', id="in the last of two"),
        pytest.param("### Answer:\n- Acme\n- Ber", id="in bullets"),
        pytest.param("### Answer: Acme, Ber", id="in plain text"),
        pytest.param("### Answer: [", id="after the bracket"),
    ],
)
def test_an_unfinished_answer_of_full_length_is_truncated(answer: str) -> None:
    assert parse_related(answer, Finish.LENGTH) == ParsedRelated(None, Status.TRUNCATED)


def test_a_complete_list_survives_what_was_cut_behind_it() -> None:
    parsed = parse_related('### Answer: ["Acme"]\n\nI chose it beca', Finish.LENGTH)
    assert parsed == ParsedRelated(("Acme",), Status.REPAIRED, ("prose-around",))


@pytest.mark.parametrize(
    "answer",
    [
        "The question is about her work.",
        "### Answer: [",
        "### Answer: The user wants to know whether the pay is fair for the town she lives in.",
    ],
)
def test_an_answer_without_items_is_malformed(answer: str) -> None:
    assert parse_related(answer) == ParsedRelated(None, Status.MALFORMED)


@pytest.mark.parametrize(
    ("completion", "text", "repairs"),
    [
        ("### Text:\nThe tenant is 32.", "The tenant is 32.", ()),
        ("\n### Text: The tenant.\n\nShe is 32.\n", "The tenant.\n\nShe is 32.", ()),
        ("<think>### Text: no</think>### Text:\nShe.", "She.", ()),
        ("The tenant is 32.", "The tenant is 32.", ("no-marker",)),
        ("Here is the new text:\nShe is 32.", "She is 32.", ("no-marker", "prose-around")),
        ("**Rewritten text:** She is 32.", "She is 32.", ("marker-variant",)),
        ("I will do it.\n### Text:\nShe.", "She.", ("prose-around",)),
        ("### Text:\n...\n### Text:\nShe.", "She.", ("prose-around",)),
        ("### Text:\n```text\nShe.\n```", "She.", ("code-fence",)),
        ("### Text:\nShe\ud800.", "She\ufffd.", ("lone-surrogate",)),
    ],
)
def test_the_text(completion: str, text: str, repairs: tuple[str, ...]) -> None:
    status = Status.REPAIRED if repairs else Status.OK

    assert parse_rewriting(completion) == ParsedRewriting(text, status, repairs)


@pytest.mark.parametrize(
    ("completion", "finish", "status"),
    [
        ("", Finish.STOP, Status.EMPTY),
        ("### Text:\n \n", Finish.STOP, Status.EMPTY),
        ("### Text:\nShe", Finish.LENGTH, Status.TRUNCATED),
        ("### Text:\nShe", Finish.FILTER, Status.FILTERED),
        ("", Finish.REFUSAL, Status.REFUSED),
        ("I'm sorry, but I can't help with that.", Finish.STOP, Status.REFUSED),
    ],
)
def test_no_text(completion: str, finish: Finish, status: Status) -> None:
    assert parse_rewriting(completion, finish) == ParsedRewriting(None, status)
