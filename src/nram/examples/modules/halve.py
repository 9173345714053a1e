"""Half of a number, rounded down: a user-defined module.

nram modules halve.py
nram search middle.py --modules READ,halve.py,INC,READ,WRITE --registers 1
"""

from nram.modules import Module

MODULE = Module(
    name="HALVE",
    arguments=("x",),
    integer=lambda M, x: x // 2,
    emit=lambda b, x: b.divide(x, b.number(2)),
    meaning="half of x, rounded down",
)
