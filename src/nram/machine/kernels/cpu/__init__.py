"""The kernel for CPUs: examples are the lanes of vector registers.

shape.py        how the processor runs a specification, and where everything is stored
lanes.py        vector code in LLVM; written in it: products.py, fuzzy.py, mixing.py, networks.py
block.py        a block of examples; forward.py and backward.py run it through an episode, episode.py joins them
kernel.py       all blocks, as the function that XLA calls; its compilation
"""
