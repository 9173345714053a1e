"""The soft machine as machine code: whole episodes, forwards and backwards, on a CPU (docs/performance.md).

shape.py        what a kernel is made for, and its storage
lanes.py        vector code in LLVM, and in it: vector_math.py, products.py, fuzzy.py, mixing.py, networks.py
block.py        a block of examples; forward.py and backward.py run it through an episode, episode.py joins them
kernel.py       all blocks, and the form in which XLA calls them
compiled.py     machine code, its cache, its registration with JAX
choice.py       whether there is a kernel for a machine
outcomes.py     the kernels as JAX functions
"""
