"""The benchmark in other evaluation harnesses, with our prompts, parser and scorer."""
