"""MY_MODULE: a module for nram. Here it computes the difference between two numbers. Change what follows, then run

nram modules my_module.py                                         # check the file
nram search my_task.py --modules READ,READ,my_module.py,WRITE     # find a program that may use it; the order matters
"""

from nram.modules import Module

MODULE = Module(
    name="MY_MODULE",
    arguments=("x", "y"),  # none, one or two
    # What it computes, in a memory of M cells: a number from 0 to M - 1 for all arguments from 0 to M - 1.
    integer=lambda M, x, y: abs(x - y),
    # The same for machine code and proofs, by the operations of a builder: add, sub, multiply, divide, number, less,
    # equal, choose. You may leave it out: then nram runs programs with this module in Python and proves nothing.
    emit=lambda b, x, y: b.choose(b.less(x, y), b.sub(y, x), b.sub(x, y)),
    meaning="the difference between x and y",
)
