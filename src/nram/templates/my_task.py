"""my_task: a task for nram. Here it asks for the number of values in an array. Change what follows, then run

nram tasks my_task.py     # check the file
nram sample my_task.py    # look at instances with their answers
nram search my_task.py    # find a program
"""

from nram.tasks import StepLimit, Task


def sample_input(rng, n, memory_size):
    """A random input of complexity n: memory_size numbers, each from 0 to memory_size - 1.

    Put what the program needs first into the first cells. Draw values from 1 up, and let a 0 end an array.
    """
    values = [rng.randrange(1, memory_size) for _ in range(n)]
    return [0, *values] + [0] * (memory_size - n - 1)


def oracle(memory):
    """The memory after a right program has run, and the addresses at which it must be right."""
    count = memory.index(0, 1) - 1
    return [count, *memory[1:]], [0]


TASK = Task(
    name="my_task",
    summary="Given an array, return the number of its values.",
    layout="0, A[0..n-1], 0; n goes to cell 0",
    step_limit=StepLimit(2, 6),  # a program must end within 2n + 6 steps
    least_memory=lambda n: n + 2,  # the fewest cells that an input of complexity n needs
    sample_input=sample_input,
    oracle=oracle,
)
