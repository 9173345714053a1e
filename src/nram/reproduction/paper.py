"""What the paper's Table 1 says, in its own words and order."""

from dataclasses import dataclass

SOURCE = "Kurach, Andrychowicz, Sutskever: Neural Random-Access Machines, ICLR 2016, arXiv:1511.06392, Table 1"

GENERALISED_TO = 50
"""'Perfect' generalisation is error 0 for complexity up to here."""

NOTES = (
    "Generalisation is 'perfect' in the paper where the error is 0 for complexity up to 50.",
    "Discretisation is 'perfect' there where the discretised machine produced exactly the same outputs as the "
    "continuous one on all test cases; where it 'hurts performance', the paper's text says, error rates are 70% or "
    "more.",
)


@dataclass(frozen=True)
class PaperRow:
    """One line of the table."""

    task: str
    complexity: str
    """Of training."""
    train_error: str
    generalisation: str
    discretisation: str


TABLE = {
    row.task: row
    for row in (
        PaperRow("access", "len(A) <= 20", "0", "perfect", "perfect"),
        PaperRow("increment", "len(A) <= 15", "0", "perfect", "perfect"),
        PaperRow("copy", "len(A) <= 15", "0", "perfect", "perfect"),
        PaperRow("reverse", "len(A) <= 15", "0", "perfect", "perfect"),
        PaperRow("swap", "len(A) <= 20", "0", "perfect", "perfect"),
        PaperRow("permutation", "len(A) <= 6", "0", "almost perfect", "perfect"),
        PaperRow("listk", "len(list) <= 10", "0", "strong", "hurts performance"),
        PaperRow("listsearch", "len(list) <= 6", "0", "weak", "hurts performance"),
        PaperRow("merge", "len(A) + len(B) <= 10", "1%", "weak", "hurts performance"),
        PaperRow("walkbst", "size(tree) <= 10", "0.3%", "strong", "hurts performance"),
    )
}
