"""Privacy and utility of maskings: which PII remains, and how much answers suffer."""
