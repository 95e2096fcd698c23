"""Parsers from the raw text of a model to subjects, entities and texts.

An answer in the form that the prompt asks for is only decoded; one in another form is repaired.
Parsers do not see the description or gold; whether an entity occurs in it is checked elsewhere.
"""
