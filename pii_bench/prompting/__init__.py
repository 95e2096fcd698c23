"""Prompts: text files with checked placeholders, and the strategies that fill them."""
