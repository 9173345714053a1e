"""The paper's Table 1 and its figure of generalisation, measured again.

job        checks, trains where asked, examines, writes the files
paper      what the paper's table says
models     the zoo's programs and networks, or the best member of a run
measuring  networks and programs on the same unseen instances
examining  which model is measured on which instances
report     the figures as JSON and as tables
figure     error against maximal complexity, drawn
"""
