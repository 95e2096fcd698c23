"""The tasks inside other people's evaluation harnesses: our prompts, parser and scorer there."""
