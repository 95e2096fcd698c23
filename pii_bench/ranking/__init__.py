"""The leaderboard: everything under a results folder, next to the published figures."""
