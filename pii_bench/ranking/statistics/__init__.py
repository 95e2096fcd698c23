"""What figures can tell: intervals, tests, smallest detectable differences, ranks.

All draws are of whole descriptions, for samples that share one are not independent. They
start from one seed: equal scores give equal figures.
"""
