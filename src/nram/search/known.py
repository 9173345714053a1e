"""Programs that are known already: the tables of a library, at which some chains start.

A chain that starts at a program for another task keeps the parts that help, a loop over an array or a walk along a
list. A program that fits the pool is left out. Otherwise the search would only find it again, and what it reports
would say nothing about the search.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nram.programs.ir import Program
from nram.search.chains import blocks_of, random_table, table_costs
from nram.search.instances import Pool
from nram.search.structure import Structure, table_of


def tables_of(library: Sequence[Program], structure: Structure, pool: Pool, seed: int) -> list[np.ndarray]:
    """The tables of the programs that this structure has room for and that do not fit the pool.

    What a program leaves open, operations that it does not use, is random.
    """
    if structure.template is not None:
        return []
    tables = []
    blocks = blocks_of(pool)
    for program in library:
        if len(program.registers) <= structure.registers and len(program.states) <= structure.states:
            genes = table_of(program, structure, random_table(structure, seed))
            if genes is not None and table_costs(structure, genes, blocks, len(pool)).sum() > 0:
                tables.append(genes)
    return tables
