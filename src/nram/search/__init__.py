"""Search: programs found straight in the discrete space, without a network.

job               a search is opened, resumed, run and saved; `nram.find_program` and `nram search` call it
engine            rounds of annealing chains on a pool of instances
counterexamples   what a program that fits the pool still gets wrong
kernel, lanes     the inner loop: candidates changed, run and scored

Importing this package imports neither Numba nor LLVM.
"""
