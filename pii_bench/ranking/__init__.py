"""The leaderboard: everything under a results folder, beside the published figures."""
