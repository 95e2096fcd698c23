"""Prompt files: plain text with placeholders such as `{{description}}`."""

from __future__ import annotations

import hashlib
import string
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pii_bench.errors import PromptError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


class _DoubleBraces(string.Template):
    # Single braces and dollars are what prompts about JSON and money are full of.
    # typeshed names the type after compilation; the class compiles a string.
    pattern = r"\{\{(?:(?P<named>[a-z_]+)\}\}|(?P<braced>(?!))|(?P<escaped>(?!))|(?P<invalid>))"  # type: ignore[assignment]


@dataclass(frozen=True, slots=True)
class Template:
    """The stem and the text of a prompt's file, whose placeholders are known to be filled."""

    name: str
    text: str

    def render(self, values: Mapping[str, str]) -> str:
        """Fill every placeholder in one pass: a value's own braces stay as they are."""
        return _DoubleBraces(self.text).substitute(values)


def load_template(path: Path, fields: frozenset[str]) -> Template:
    """Read a prompt file and check its placeholders against the fields that will be filled.

    Raises:
        PromptError: the file is absent, a field has no placeholder, a placeholder has no
            field, or braces are not a placeholder.
    """
    text = read_prompt_text(path)
    try:
        found = set(_DoubleBraces(text).get_identifiers())
        _DoubleBraces(text).substitute(dict.fromkeys(found, ""))
    except ValueError as error:
        raise PromptError(f"{path}: '{{{{' that opens no placeholder ({error})") from None
    if missing := sorted(fields - found):
        raise PromptError(f"{path}: no placeholder for {', '.join(missing)}")
    if unknown := sorted(found - fields):
        allowed = ", ".join(sorted(fields))
        raise PromptError(f"{path}: nothing fills {', '.join(unknown)} (allowed: {allowed})")
    return Template(path.stem, text)


def read_prompt_text(path: Path) -> str:
    """The content of a file of prompts, without the white space around it.

    Raises:
        PromptError: absent, unreadable or empty.
    """
    try:
        text = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise PromptError(f"{path}: {error}") from error
    if not text:
        raise PromptError(f"{path}: the file is empty")
    return text


def content_hash(*texts: str) -> str:
    """SHA-256 in hexadecimal over texts in order, each told from the next."""
    digest = hashlib.sha256()
    for text in texts:
        encoded = text.encode()
        digest.update(len(encoded).to_bytes(8, "big") + encoded)
    return digest.hexdigest()
