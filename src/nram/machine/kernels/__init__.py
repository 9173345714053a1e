"""The soft machine as machine code: whole episodes, forwards and backwards (docs/performance.md).

common   what both kernels share
cpu      examples in the lanes of vector registers
gpu      one warp per example

`cpu` and `gpu` do not know each other. `common` knows neither, except for the one file that chooses.
"""
