"""Parsers from the raw text of a model to subjects, entities and texts.

Every repair has a name (`answers.Stage`), runs in a fixed order and is recorded. Parsers do not see
the description or gold; whether an entity occurs in the text is checked elsewhere.
"""
