"""From trained controllers to programs. This is the only part of `nram.programs` that needs JAX.

table     an MLP or an automaton: all flags, all states
lstm      an LSTM, watched at work (`lstm_runs`), its histories merged into an automaton (`merging`)
from_run  the program of a run's member, simplified, with the record of how it was made
"""
