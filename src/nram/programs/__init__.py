"""Programs: what trained machines become. Everything here works on integers; only `extract` imports JAX.

ir         what a program is, and `check` what makes it well-formed
text       the form for people, and `files` the form for programs; `library` programs by name
interpret  the reference interpreter; `native` machine code; `execute` runs either on a user's `memory`
extract    from a trained controller to a program
simplify   the same program, shorter
verify     what can be shown of it
"""

from nram.programs.execute import Result, execute
from nram.programs.files import read_program, save_program
from nram.programs.interpret import Ending, Step, interpret, trace
from nram.programs.ir import (
    Constant,
    Evidence,
    Operation,
    Output,
    Program,
    ProgramError,
    Register,
    Row,
    Value,
)
from nram.programs.text import from_text, to_text

__all__ = [
    "Constant",
    "Ending",
    "Evidence",
    "Operation",
    "Output",
    "Program",
    "ProgramError",
    "Register",
    "Result",
    "Row",
    "Step",
    "Value",
    "execute",
    "from_text",
    "interpret",
    "read_program",
    "save_program",
    "to_text",
    "trace",
]
