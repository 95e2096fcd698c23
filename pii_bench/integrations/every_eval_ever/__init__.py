"""Results in the formats of other projects."""
