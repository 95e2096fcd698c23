from __future__ import annotations

from pii_bench.errors import CheckFailedError, MissingKeyError, UnknownNameError


def test_callers_can_read_the_values_of_an_error() -> None:
    unknown = UnknownNameError("dataset", "dem", ["demo"])
    assert (unknown.kind, unknown.name, unknown.allowed) == ("dataset", "dem", ("demo",))

    failed = CheckFailedError(problems=3, samples=2)
    assert (failed.problems, failed.samples) == (3, 2)

    missing = MissingKeyError("openai", "OPENAI_API_KEY")
    assert (missing.provider, missing.variable) == ("openai", "OPENAI_API_KEY")
