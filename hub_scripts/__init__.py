"""Push the dataset, the metrics, results and the leaderboard Space to the Hub."""
