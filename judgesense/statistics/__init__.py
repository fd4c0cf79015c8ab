"""The statistics of a judge on plain arrays: numpy and scipy, nothing of the project."""
