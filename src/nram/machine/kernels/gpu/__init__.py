"""The soft machine as machine code for NVIDIA GPUs: whole episodes, forwards and backwards, a warp an example.

shape.py        what a kernel is made for, and its storage; arrangement.py how the wires lie in it
warps.py        code on "a warp of numbers"; host.py and device.py write it for a CPU (for tests) and for a GPU
fuzzy.py        modules; wires.py softmaxes and mixing; networks.py and cells.py controllers: written once for both
frame.py        where a warp finds things; episode.py, forward.py and backward.py run an example through its steps
sums.py         weights into shared memory before, their gradients out of the records after, in a launch of their own
kernel.py       both launches for a CPU and as PTX
call_frame.py   the form in which XLA calls it; compiled.py makes and registers it; launch.py speaks to the GPU's driver
choice.py       whether there is a kernel for a machine
outcomes.py     the kernels as JAX functions
"""
