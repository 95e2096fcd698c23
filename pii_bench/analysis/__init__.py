"""What the paper analyses, from stored runs: curves, types, drops, agreement of datasets."""
