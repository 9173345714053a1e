"""Extraction: from trained controllers to programs. This is the only part of `nram.programs` that needs JAX.

table     extracts an MLP or an automaton: all flags, all states
lstm      extracts an LSTM: it records runs (`lstm_runs`) and merges their histories into an automaton (`merging`)
from_run  extracts and simplifies the program of a run's member, and writes its card
"""
