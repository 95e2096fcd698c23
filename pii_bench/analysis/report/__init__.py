"""A leaderboard as one page: tables, figures, every sample; a file that needs nothing else."""
