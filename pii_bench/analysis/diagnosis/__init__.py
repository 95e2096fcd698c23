"""Behind the scores: kinds of error, leak against over-masking, twins."""
