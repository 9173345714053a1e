"""Programs as native code.

flow          which row can follow which, and which tests find it
instructions  modules and rows as LLVM instructions
llvm          whole programs as LLVM; `strides` adds loops that take many steps at once, `tables` is for large programs
jit           programs compiled in memory and called from Python
aot           programs compiled to files: objects, libraries, headers; `c_source` writes C
"""
