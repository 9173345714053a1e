"""The paper's Table 1 and its figure of generalisation, measured again.

paper      what the paper's table says
models     what is examined: the zoo's programs and networks, or the best member of a run
soft       the continuous machine under several step limits in one pass
measuring  networks and programs on the same unseen instances
examining  the order of the work, and its yield
report     the yield as JSON, and in the words of the table
figure     error against maximal complexity, drawn
"""
