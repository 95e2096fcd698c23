"""What stands behind the scores: kinds of error, leak against over-masking, twins."""
