"""`nram bench SUBJECT`: measures speed. One file per subject."""

DESCRIPTION = "Measure speed on this machine."
SUBJECTS = {
    "step": "the forward pass and the training step",
    "scaling": "how the training step's time grows with its sizes",
    "programs": "native code beside hand-written C, NumPy and the interpreter",
    "search": "candidates a second of the search beside plain loops",
}
