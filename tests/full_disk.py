"""A disk that is full, as far as this process can tell."""

from __future__ import annotations

import resource
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def no_file_longer_than(size: int) -> Iterator[None]:
    """Let the system cut what is written beyond that many bytes of a file, as a full disk does.

    Its reason is `File too large`; Python ignores the signal that comes with it.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
