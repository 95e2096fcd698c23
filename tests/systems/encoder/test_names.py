"""Parts of a person's full name."""

from __future__ import annotations

import pytest

from pii_bench.systems.encoder.names import whole_names, with_parts_of_names
from pii_bench.taxonomy import PiiType


def parts_found(text: str, *names: str) -> list[str]:
    """What is found beside the names, each at its first place in the text."""
    spans = sorted((text.index(name), text.index(name) + len(name), PiiType.PER) for name in names)
    found = with_parts_of_names(text, spans)
    assert found == sorted(found)
    assert {kind for _, _, kind in found} == {PiiType.PER}
    return [text[start:end] for start, end, kind in found if (start, end, kind) not in spans]


@pytest.mark.parametrize(
    ("text", "names", "parts"),
    [
        ("Laleh Rezai works. Ask Laleh, or Mr Rezai.", ["Laleh Rezai"], ["Laleh", "Rezai"]),
        ("Laleh Rezai works. Laleh's shift is long.", ["Laleh Rezai"], ["Laleh"]),
        ("Ann Wilk lives on Wilk Street.", ["Ann Wilk"], []),
        ("Ann Wilk and Wilk Ann Roe.", ["Ann Wilk"], []),
        ("Ann Wilk: tell Wilk Bo Roe is here.", ["Ann Wilk", "Bo Roe"], ["Wilk"]),
        ("Rose Bell has a rose. Rose waters it.", ["Rose Bell"], []),
        ("Judge Orla Finn sat. The Judge left.", ["Judge Orla Finn"], []),
        ("Will Finn wrote. Will you come?", ["Will Finn"], []),
        ("Ann said that Annika and Ann came.", ["Ann"], []),
        ("Annika Roe and Annikas car.", ["Annika Roe"], []),
        ("Jo Wilk asks for Jo.", ["Jo Wilk"], []),
        ("Wilk 4711 is no name, and Wilk is alone.", ["Wilk 4711"], []),
    ],
)
def test_where_a_part_is_alone(text: str, names: list[str], parts: list[str]) -> None:
    assert parts_found(text, *names) == parts


def test_a_part_inside_another_span_is_left() -> None:
    text = "Ann Wilk works at Wilk and Sons."
    spans = [(0, 8, PiiType.PER), (18, 31, PiiType.ORG)]

    assert with_parts_of_names(text, spans) == spans


@pytest.mark.parametrize(
    ("names", "whole"),
    [
        (["Laleh Rezai", "Laleh"], {"Laleh Rezai": "Laleh Rezai", "Laleh": "Laleh Rezai"}),
        (["Ann Roe", "Bo Roe", "Roe"], {"Ann Roe": "Ann Roe", "Bo Roe": "Bo Roe", "Roe": "Roe"}),
        (["Ann", "Bo"], {"Ann": "Ann", "Bo": "Bo"}),
        (["@owl_7", "owl"], {"@owl_7": "@owl_7", "owl": "owl"}),
    ],
)
def test_whose_a_part_is(names: list[str], whole: dict[str, str]) -> None:
    assert whole_names(names) == whole
