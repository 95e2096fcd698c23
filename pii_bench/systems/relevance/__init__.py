"""Relevance systems: each tells which of the entities of a text a query needs."""
