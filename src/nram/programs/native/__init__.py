"""Programs as native code.

flow      which row can follow which, and by which tests it is found
llvm      a program as LLVM instructions; `strides` the loops that take many steps at once; `tables` very large programs
jit       compiled in memory and called from Python
c_source  the same as C text; `aot` files: objects, libraries, headers
speed     native code against hand-written C, NumPy and the interpreter
"""
