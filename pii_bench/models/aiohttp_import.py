"""aiohttp without the certificates that it reads when it is imported.

It makes two TLS contexts of its own at import, and each reads those of the system: 0.03 s of
0.06 (3.14.5). Connections here have a context that is handed to them.
"""

from __future__ import annotations

import importlib
import ssl
import sys
from typing import Any, Final

_READS: Final = "set_default_verify_paths"


def import_without_certificates() -> None:
    """Import `aiohttp`; its own TLS contexts read the certificates when they are first used.

    Nothing is done where it is imported already.
    """
    # What is put into the class is deleted again: it must be inherited.
    if "aiohttp" in sys.modules or _READS in vars(ssl.SSLContext):
        return
    waiting: list[ssl.SSLContext] = []

    def wait(context: ssl.SSLContext) -> None:
        waiting.append(context)

    setattr(ssl.SSLContext, _READS, wait)
    try:
        importlib.import_module("aiohttp")
    finally:
        delattr(ssl.SSLContext, _READS)
        for context in waiting:
            context.__class__ = _ReadWhenUsed


class _ReadWhenUsed(ssl.SSLContext):
    """A context without certificates: its first use reads them, and makes it as any other."""

    def wrap_bio(self, *arguments: Any, **options: Any) -> ssl.SSLObject:
        return self._read().wrap_bio(*arguments, **options)

    def wrap_socket(self, *arguments: Any, **options: Any) -> ssl.SSLSocket:
        return self._read().wrap_socket(*arguments, **options)

    def _read(self) -> ssl.SSLContext:
        self.__class__ = ssl.SSLContext  # type: ignore[assignment]
        self.set_default_verify_paths()
        return self
