from __future__ import annotations

import pytest

from pii_bench.datasets.codes import is_ip_address, luhn_holds


# The standard's example, and the number that all card networks use in tests.
@pytest.mark.parametrize("digits", ["79927398713", "4111111111111111"])
def test_luhn(digits: str) -> None:
    assert luhn_holds(digits)
    assert not luhn_holds(digits[:-1] + str((int(digits[-1]) + 1) % 10))


@pytest.mark.parametrize(
    ("text", "expected"),
    [("192.0.2.1", True), ("2001:db8::1", True), ("300.1.1.1", False), ("fe80::1%eth0", False)],
)
def test_ip_addresses(text: str, expected: bool) -> None:
    assert is_ip_address(text) is expected
