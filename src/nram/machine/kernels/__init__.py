"""The soft machine as machine code: whole episodes, forwards and backwards.

common   what both kernels share: their specification, XLA's interface, the JAX functions
cpu      examples in the lanes of vector registers
gpu      a warp per example
"""
