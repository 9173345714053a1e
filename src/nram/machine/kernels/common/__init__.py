"""What the kernels for CPU and GPU share.

specification.py   what a kernel computes, and the arrays it takes and returns
choice.py          which kernel runs on which devices, or why there is none
outcomes.py        the kernels as JAX functions
call_frame.py      the form in which XLA calls a kernel
code.py            writing LLVM code for numbers; vector_math.py writes exp, log, tanh with it
"""
