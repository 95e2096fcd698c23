"""Construction of the datasets: profile, consistency, description, query, check."""
