"""The kernel for NVIDIA GPUs: one warp per example.

shape.py        how a GPU runs a specification, and where everything is stored; arrangement.py where the wires are
warps.py        code on warps of numbers; device.py implements it for a GPU
fuzzy.py        modules; wires.py softmaxes and mixing; networks.py and cells.py controllers
frame.py        where a warp finds things; episode.py, forward.py and backward.py run an example through its steps
sums.py         before: weights into shared memory; after, in a launch of its own: their gradients
kernel.py       both launches, as PTX
launch.py       PTX compiled by NVIDIA's driver, and the function that XLA calls
"""
