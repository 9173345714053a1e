"""Programs: what trained machines become. Everything here works on integers; only `extract` imports JAX.

ir         what a program is; `check` says what makes it valid; `card` how it was made
text       the form for people, and `files` the form for programs; `library` programs by name
interpret  the reference interpreter; `native` machine code; `execute` runs either on a user's `memory`
extract    from a trained controller to a program
simplify   a shorter program that does the same
verify     what is proven and what is tested
"""
