"""What annotators are told where a project has no guidelines of its own."""

from __future__ import annotations

from typing import Final

DEFAULT: Final = """\
Stage 1: mark what is personal
Mark every piece of information about a person in the text: names, numbers, places, employers, \
dates, sums, illnesses and the like.
Mark the smallest piece that says it: "41 days", not "for 41 days"; "Halifax", not "in Halifax".
Say whose it is. The first person of the text is A, the next is B, and so on. What two people \
share belongs to both.
Give each piece its type and category. Mark all its places; the box "all places" does so at once.
Do not mark what is about nobody: a hotline, a public holiday, a famous building that nobody lives \
or works at.

Stage 2: choose what the question needs
Read the question. Choose the pieces without which nobody could answer it, and no others.
Check whose each chosen piece is.
Names of persons are hardly ever needed: an answer can say "she".
Confirm that each piece is necessary: without it the answer would be another, or none.
Confirm that together they are enough: everything else could be hidden.
If reasonable people could choose otherwise, say so, and why."""
