"""Kernels of a cursor: where another stream stands in a suffix tree."""

import numpy as np

from .._jit import kernel
from .suffix_tree_kernels import ACTIVE, BELOW, LEAF, LENGTH, Ids, Numbers, Table, child_of, descend, start_of


@kernel
def follow(state: Numbers, text: Ids, nodes: Table, edges: Table, tokens: Ids, places: Numbers, lengths: Ids) -> None:
    """Let another stream go on by `tokens` (>= 0), and keep its longest suffix that the tree holds.

    In `state` (as of a tree; its own vector), LEAF and LENGTH are where an occurrence of that suffix begins and ends,
    so that `candidates` answers for it as it does for the end of the text. For each token, its match length and the
    place behind the match are noted. The text has to end with a border. An edge may have been split since the last
    time, so each step goes down from the active node.
    """
    for at in range(tokens.size):
        token = np.int64(tokens[at])
        while True:
            length = state[LENGTH] - state[LEAF]
            node, below = descend(text, nodes, edges, state[ACTIVE], state[LEAF], length)
            if below == 0:
                below = child_of(nodes, edges, node, token)
            elif text[start_of(nodes, below) + length] != token:
                below = np.int64(0)
            if below != 0 or length == 0:
                break
            state[ACTIVE] = nodes[node]["link"]
            state[LEAF] += 1
        state[ACTIVE] = node
        if below != 0:
            state[LEAF] = start_of(nodes, below)
            state[LENGTH] = state[LEAF] + length + 1
        places[at], lengths[at] = state[LENGTH], state[LENGTH] - state[LEAF]
    settled = descend(text, nodes, edges, state[ACTIVE], state[LEAF], state[LENGTH] - state[LEAF])
    state[ACTIVE], state[BELOW] = settled
