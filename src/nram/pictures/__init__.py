"""Pictures: circuits of programs, traces of runs, curves of errors and of training."""
