from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pii_bench.models.base import Finish
from pii_bench.prompting.parsing import ParsedRewriting, parse_rewriting
from pii_bench.tasks import Status


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


@given(st.text(), st.sampled_from(Finish))
def test_nothing_raises_and_a_text_is_never_blank(completion: str, finish: Finish) -> None:
    parsed = parse_rewriting(completion, finish)

    assert (parsed.text is not None) == parsed.status.answered
    assert parsed.text is None or parsed.text.strip()
