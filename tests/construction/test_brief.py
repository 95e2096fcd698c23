from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from pii_bench.check import Problem
from pii_bench.construction.brief import load_briefs
from pii_bench.construction.commission import Commission
from pii_bench.construction.markup import HE, SHE
from pii_bench.construction.people import Fact, Place, Profile
from pii_bench.construction.relations import RELATIONS
from pii_bench.errors import PromptError
from pii_bench.resources import PROMPTS

if TYPE_CHECKING:
    from pathlib import Path

DUBLIN = Place("Ireland", "Dublin")
HOME = Fact("City/Region", "home", "Dublin")
AGE = Fact("Age", "", "61")
ROSA = Profile("A", SHE, DUBLIN, (Fact("Full Name", "", "Rosa Lee"), AGE, HOME))
TOM = Profile("B", HE, DUBLIN, (Fact("Full Name", "", "Tom Lee"), HOME))


def commission(asker: str, register: str = "letter") -> Commission:
    return Commission(
        id="w-multi-0001",
        register=register,
        profiles={"A": ROSA, "B": TOM},
        relation=RELATIONS["grandparent-grandchild"],
        chars=640,
        scenario="legal/power-of-attorney",
        needs=(("A", AGE),),
        asker=asker,
    )


def test_a_description_is_asked_for_with_every_value() -> None:
    lines = load_briefs().description(commission("A")).splitlines()

    assert "A: called Rosa Lee (she/her)" in lines
    assert "- Age: 61" in lines
    assert lines.count("- City/Region (home): Dublin") == 2
    assert "B: called Tom Lee (he/him)" in lines
    assert "A and B are grandparent (A) and grandchild (B), A being the elder." in lines
    assert "What both have stands in the text once and is said of both: Dublin." in lines
    assert "- Plain text of about 640 characters." in " ".join(lines)


def test_a_query_is_asked_for_with_the_text_and_what_it_needs() -> None:
    lines = load_briefs().query(commission("B"), "Rosa Lee is 61.").splitlines()

    assert "Rosa Lee is 61." in lines
    assert "- of A: Age: 61" in lines
    assert "What it is about: power of attorney (legal)" in lines


@pytest.mark.parametrize(
    ("asker", "register", "expected"),
    [
        ("A", "letter", "A, who speaks as I, and of B by the relation between them and wrote"),
        ("B", "letter", "B, who speaks as I, and of A by the relation between them\n"),
        ("A", "biography", "A, who speaks as I, and of B by the relation between them\n"),
        ("", "letter", "somebody else"),
    ],
)
def test_a_query_is_asked_by_somebody(asker: str, register: str, expected: str) -> None:
    prompt = load_briefs().query(commission(asker, register), "Rosa Lee is 61.")

    assert f"Who asks: {expected}" in prompt


def test_a_repair_lists_every_reason() -> None:
    problems = [Problem("s", "length", "it is short"), Problem("s", "leak", "it leaks")]

    assert "\n- it is short\n- it leaks\n" in load_briefs().repair(problems)


def test_the_hash_covers_every_file(tmp_path: Path) -> None:
    shutil.copytree(PROMPTS / "construction", folder := tmp_path / "construction")
    hashes = {load_briefs(folder).sha256}

    for path in sorted(folder.iterdir()):
        path.write_text(path.read_text(encoding="utf-8") + "\n# changed", encoding="utf-8")
        hashes.add(load_briefs(folder).sha256)

    assert len(hashes) == 5


def test_every_register_has_a_line(tmp_path: Path) -> None:
    shutil.copytree(PROMPTS / "construction", folder := tmp_path / "construction")
    (folder / "registers.txt").write_text("@ resume\nA resume.\n", encoding="utf-8")

    with pytest.raises(PromptError, match=r"no line for biography, case-note"):
        load_briefs(folder)
