"""What is known of codes whose form can be checked."""

from __future__ import annotations

import ipaddress


def luhn_holds(digits: str) -> bool:
    """Whether the last of some digits is right by Luhn's formula (ISO/IEC 7812-1)."""
    doubled = [int(d) * (1 + place % 2) for place, d in enumerate(reversed(digits))]
    return sum(d - 9 if d > 9 else d for d in doubled) % 10 == 0


def is_ip_address(text: str) -> bool:
    """Whether a text is an address of IPv4 or IPv6, without a zone."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    # A zone, "fe80::1%eth0", is of one machine and no part of the address.
    return "%" not in text
