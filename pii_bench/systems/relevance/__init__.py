"""Relevance systems, which select the entities of a text that a query needs."""
