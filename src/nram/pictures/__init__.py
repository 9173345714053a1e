"""Pictures of runs: curves of errors and of training."""
