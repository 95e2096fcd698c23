"""Lists of texts behind `### Answer:`, and texts behind `### Text:`."""

from __future__ import annotations

import pytest

from pii_bench.models.base import Finish
from pii_bench.prompting.parsing.answers import Parsed
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

QUOTES: list[tuple[str, str, Texts]] = [
    ("single", "['Acme', 'Berlin']", ("Acme", "Berlin")),
    (
        "apostrophes in single quotes",
        "['St. Brendan's Hospital', 'the nurses' station']",
        ("St. Brendan's Hospital", "the nurses' station"),
    ),
    (
        "typographic",
        "[“Acme”, ‘Berlin’, «Bonn», „Köln“, 「東京」, `Oslo`]",
        ("Acme", "Berlin", "Bonn", "Köln", "東京", "Oslo"),
    ),
    ("escaped", r"[\"Acme\", \"Berlin\"]", ("Acme", "Berlin")),
    ("doubled", '[""Acme"", ""Berlin""]', ("Acme", "Berlin")),
    ("as in CSV", '["say ""hi"" now",]', ('say "hi" now',)),
    ("nested", '["the "old" mill", "mill "old""]', ('the "old" mill', 'mill "old"')),
    ("unknown escape", r'["C:\Users"]', (r"C:\Users",)),
    ("raw line break", '["Acme\nLtd"]', ("Acme\nLtd",)),
    ("half a surrogate pair", r'["\ud83d"]', ("\ufffd",)),
    ("none", "[Acme Corp, O'Brien]", ("Acme Corp", "O'Brien")),
    ("some", '["Acme", Berlin]', ("Acme", "Berlin")),
    ("none, amounts", "[$2,180, 10:30 AM]", ("$2,180", "10:30 AM")),
]

PUNCTUATION: list[tuple[str, str, Texts]] = [
    ("trailing comma", '["Acme", "Berlin",]', ("Acme", "Berlin")),
    ("missing comma", '["Acme" "Berlin"]', ("Acme", "Berlin")),
    ("missing comma and space", '["Acme""Berlin"]', ("Acme", "Berlin")),
    ("semicolons", '["Acme"; "Berlin"]', ("Acme", "Berlin")),
    ("full-width", '［"Acme"，"Berlin"］', ("Acme", "Berlin")),
    ("tuple", '("Acme", "Berlin")', ("Acme", "Berlin")),
    ("set", '{"Acme", "Berlin"}', ("Acme", "Berlin")),
    ("wrong bracket", '["Acme", "Berlin"}', ("Acme", "Berlin")),
    ("comments", '["Acme", // employer\n "Berlin"]', ("Acme", "Berlin")),
    ("notes", '["Acme" (employer), "Berlin" - city]', ("Acme", "Berlin")),
    ("numbers", "[32, 4.5, true]", ("32", "4.5", "true")),
    ("None", "[None]", ()),
    ("dots", '["Acme", ...]', ("Acme",)),
    ("blank", '["", "Acme"]', ("Acme",)),
    ("a colon too many", '["Acme":]', ("Acme",)),
    ("white space that JSON does not have", '["Acme",\v"Berlin"]', ("Acme", "Berlin")),
]

SHAPES: list[tuple[str, str, Texts]] = [
    ("answer object", '{"answer": ["Acme"]}', ("Acme",)),
    ("answer object with reasons", '{"reasoning": ["She asks"], "entities": ["Acme"]}', ("Acme",)),
    ("records", '[{"text": "Acme", "type": "ORG"}]', ("Acme",)),
    ("text to type", '{"Acme": "ORG", "32": "DEM"}', ("Acme", "32")),
    ("label to text", '{"employer": "Acme"}', ("Acme",)),
    ("lists in a list", '[["Acme"], ["Berlin"]]', ("Acme", "Berlin")),
    ("empty object", "{}", ()),
    ("brackets beyond reason", "[" * 30 + '"Acme"' + "]" * 30, ("Acme",)),
    ("boxed", r'\boxed{["Acme"]}', ("Acme",)),
]

MARKERS: list[tuple[str, str, Texts]] = [
    ("bold", '**Answer:** ["Acme"]', ("Acme",)),
    ("bold around all", '**Answer: ["Acme"]**', ("Acme",)),
    ("no colon", '### Answer\n["Acme"]', ("Acme",)),
    ("final", '## Final Answer:\n\n["Acme"]', ("Acme",)),
    ("lower case", 'answer: ["Acme"]', ("Acme",)),
    ("full-width colon", '### Answer： ["Acme"]', ("Acme",)),
    ("in a sentence", 'The answer is: ["Acme"]', ("Acme",)),
    ("in a line", '### Thought: pay. ### Answer: ["Acme"]', ("Acme",)),
    ("none", '["Acme"]', ("Acme",)),
    (
        "none, the last list counts",
        'Options: ["Acme", "Berlin"]. [PER_1] asks about work, so: ["Acme"]',
        ("Acme",),
    ),
    ("nothing after the last", '### Answer: ["Acme"]\n### Answer:', ("Acme",)),
    ("prose after", '### Answer: ["Acme"]\n\nI chose "Acme" because of [work].', ("Acme",)),
    ("prose before the list", '### Answer: The entities are ["Acme"].', ("Acme",)),
    ("fence", '```json\n["Acme"]\n```', ("Acme",)),
    ("fence after the marker", '### Answer:\n```\n["Acme"]\n```', ("Acme",)),
    ("byte-order mark", '\ufeff### Answer: ["Acme"]', ("Acme",)),
]

NO_BRACKETS: list[tuple[str, str, Texts]] = [
    ("commas", "### Answer: Acme, $2,180", ("Acme", "$2,180")),
    ("quoted", '### Answer: "Acme", "Berlin"', ("Acme", "Berlin")),
    ("quoted, one a line", '### Answer:\n"Acme"\n"Berlin"\n\nBoth are needed.', ("Acme", "Berlin")),
    ("quoted in a sentence", '### Answer: She needs "Acme" and "Berlin".', ("Acme", "Berlin")),
    ("bullets", "### Answer:\n- Acme\n- Smith, Lee & Co", ("Acme", "Smith, Lee & Co")),
    (
        "numbers and bold",
        '### Answer:\n1. **Acme** - her employer\n2. "Berlin"',
        ("Acme", "Berlin"),
    ),
    ("bullets without marker", "- Acme\n- Berlin", ("Acme", "Berlin")),
    ("None", "### Answer: None", ()),
    ("N/A", "### Answer: N/A", ()),
    ("a sentence for nothing", "### Answer: No PII is needed.", ()),
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
    assert parse_related(answer, finish) == Parsed(texts, Status.OK)


@pytest.mark.parametrize(
    ("answer", "texts"), [pytest.param(*row[1:], id=str(row[0])) for row in REPAIRED]
)
def test_other_forms_are_repaired(answer: str, texts: Texts) -> None:
    assert parse_related(answer) == Parsed(texts, Status.REPAIRED)


@pytest.mark.parametrize(
    ("answer", "texts"),
    [
        ('### Answer: ["Acme", "Ber', ("Acme",)),
        ('### Answer: ["Acme", "Berlin"', ("Acme", "Berlin")),
        ("### Answer: ['Acme', Ber", ("Acme",)),
    ],
)
def test_a_cut_is_repaired_unless_the_length_was_spent(answer: str, texts: Texts) -> None:
    parsed = parse_related(answer, Finish.STOP)
    assert (parsed.payload, parsed.status) == (texts, Status.REPAIRED)
    assert parse_related(answer, Finish.LENGTH) == Parsed(None, Status.TRUNCATED)


@pytest.mark.parametrize(
    "answer",
    [
        "### Thought: she asks about",
        'Options: ["Acme", "Berlin"]. Of these she',
        '### Answer: ["Acme"]\n### Answer:',
        "### Answer:\n- Acme\n- Ber",
        "### Answer: Acme, Ber",
        "### Answer: [",
    ],
)
def test_an_unfinished_answer_of_full_length_is_truncated(answer: str) -> None:
    assert parse_related(answer, Finish.LENGTH) == Parsed(None, Status.TRUNCATED)


def test_a_complete_list_survives_what_was_cut_behind_it() -> None:
    parsed = parse_related('### Answer: ["Acme"]\n\nI chose it beca', Finish.LENGTH)
    assert parsed == Parsed(("Acme",), Status.REPAIRED)


@pytest.mark.parametrize(
    "answer",
    [
        "The question is about her work.",
        "### Answer: [",
        "### Answer: The user wants to know whether the pay is fair for the town she lives in.",
    ],
)
def test_an_answer_without_items_is_malformed(answer: str) -> None:
    assert parse_related(answer) == Parsed(None, Status.MALFORMED)


@pytest.mark.parametrize(
    ("completion", "text", "status"),
    [
        ("### Text:\nThe tenant is 32.", "The tenant is 32.", Status.OK),
        ("\n### Text: The tenant.\n\nShe is 32.\n", "The tenant.\n\nShe is 32.", Status.OK),
        ("<think>### Text: no</think>### Text:\nShe.", "She.", Status.OK),
        ("The tenant is 32.", "The tenant is 32.", Status.REPAIRED),
        ("Here is the new text:\nShe is 32.", "She is 32.", Status.REPAIRED),
        ("**Rewritten text:** She is 32.", "She is 32.", Status.REPAIRED),
        ("I will do it.\n### Text:\nShe.", "She.", Status.REPAIRED),
        ("### Text:\n...\n### Text:\nShe.", "She.", Status.REPAIRED),
        ("### Text:\n```text\nShe.\n```", "She.", Status.REPAIRED),
        ("### Text:\nShe\ud800.", "She\ufffd.", Status.REPAIRED),
    ],
)
def test_the_text(completion: str, text: str, status: Status) -> None:
    assert parse_rewriting(completion) == Parsed(text, status)


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
    assert parse_rewriting(completion, finish) == Parsed(None, status)
