"""From the raw text of a model to subjects, entities and texts, with nothing hidden.

Every repair has a name (`answers.Stage`), runs in a fixed order, and is recorded. A parser sees no
description and no gold: whether an entity occurs is checked elsewhere.
"""
