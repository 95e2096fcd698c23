"""Privacy and utility of maskings: what still leaks, and what an answer loses by it."""
