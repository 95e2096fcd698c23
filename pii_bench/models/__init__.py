"""Models: each turns a request into a completion."""
