"""Kernels of the suffix tree: construction (Ukkonen 1995, Algorithmica 14) and queries, on flat record tables.

The stream `text` holds token ids (>= 0) and borders (-1). A suffix that is distinct from all others is a leaf and
needs no record: the leaf of the suffix that begins at i is the number ~i. Node 0 is the root, which is never a child,
so child 0 means none. A node keeps its two oldest children inline; further ones are records of an open-addressing
table keyed by (node, token) and chained newest first.
"""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from .._jit import kernel

Number: TypeAlias = int | np.int64
Ids: TypeAlias = NDArray[np.int32]
Numbers: TypeAlias = NDArray[np.int64]
Table: TypeAlias = NDArray[np.void]

NODE = np.dtype(
    [
        ("start", np.int32),  # where the node's string occurs: the newest leaf hung at this node itself
        ("depth", np.int32),  # length of the node's string
        ("link", np.int32),  # the node of the string without its first token
        ("more", np.int32),  # slot of the newest edge beyond the two inline ones, -1 for none
        ("token_0", np.int32),
        ("child_0", np.int32),
        ("token_1", np.int32),
        ("child_1", np.int32),
    ]
)
EDGE = np.dtype([("node", np.int32), ("token", np.int32), ("child", np.int32), ("older", np.int32)])
CANDIDATE = np.dtype([("position", np.int64), ("match_length", np.int32), ("count", np.int32)])

# Fields of the state vector (int64).
LENGTH = 0  # tokens and borders in the stream
LEAF = 1  # the suffixes before this one are leaves; the one that begins here is the longest that occurred before
ACTIVE = 2  # the deepest node on the way to the end of that suffix
BELOW = 3  # the child whose edge the suffix ends in, 0 when it ends at the node itself
NODES = 4  # nodes in use
EDGES = 5  # edges in use
UNLINKED = 6  # the node of the last split, still without its suffix link; 0 for none
STATE_FIELDS = 7

# Fields of the scratch vector (int64) of `candidates`.
ROWS = 0  # rows written
LEVEL = 1  # first row of the length at hand
GROUPS = 2  # distinct next tokens seen
VISITS = 3  # nodes that may still be opened
PER_TOKEN = 4
BRANCHES = 5  # 32 children of the node at hand
FRONTIER = 37  # 32 subtrees that stand for one next token, and room for one more while a node is opened
SEEN = 70  # the distinct next tokens

COUNT_CAP = 32  # occurrences told apart for one next token, and branches looked at for one length
VISIT_CAP = 64  # nodes opened in one query
CHAIN_CAP = 256  # edges looked at to find branches that are no borders
STEPWISE = 24  # below this length every shorter suffix is looked at


@kernel
def slot_of(node: Number, key: Number, size: Number) -> Number:
    """Home slot of an edge in a table of `size` slots."""
    mixed = (np.int64(node) * 2654435761) ^ (np.int64(key) * 2246822519)
    mixed = ((mixed ^ (mixed >> 29)) & 0xFFFFFFFF) * 739982445
    return ((mixed ^ (mixed >> 31)) & 0xFFFFFFFF) * np.int64(size) >> 32


@kernel
def child_of(nodes: Table, edges: Table, node: Number, token: Number) -> Number:
    """Child of `node` whose edge begins with `token` (>= 0), 0 for none."""
    record = nodes[node]
    if record["token_0"] == token:
        return np.int64(record["child_0"])
    if record["token_1"] == token:
        return np.int64(record["child_1"])
    if record["more"] < 0:
        return np.int64(0)
    slot = slot_of(node, token, edges.size)
    while edges[slot]["child"] != 0:
        if edges[slot]["node"] == node and edges[slot]["token"] == token:
            return np.int64(edges[slot]["child"])
        slot = slot + 1 if slot + 1 < edges.size else 0
    return np.int64(0)


@kernel
def replace_child(nodes: Table, edges: Table, node: Number, token: Number, child: Number) -> None:
    """Put `child` in the place of the existing child of `node` whose edge begins with `token`."""
    record = nodes[node]
    if record["token_0"] == token:
        record["child_0"] = child
        return
    if record["token_1"] == token:
        record["child_1"] = child
        return
    slot = slot_of(node, token, edges.size)
    while edges[slot]["node"] != node or edges[slot]["token"] != token:
        slot = slot + 1 if slot + 1 < edges.size else 0
    edges[slot]["child"] = child


@kernel
def put_edge(edges: Table, node: Number, token: Number, child: Number, older: Number) -> Number:
    """Write a new edge to a free slot and return it; edges to borders are spread by leaf, as nothing looks them up."""
    slot = slot_of(node, token if token >= 0 else child, edges.size)
    while edges[slot]["child"] != 0:
        slot = slot + 1 if slot + 1 < edges.size else 0
    edges[slot]["node"] = node
    edges[slot]["token"] = token
    edges[slot]["child"] = child
    edges[slot]["older"] = older
    return slot


@kernel
def rehash(nodes: Table, used: Number, edges: Table, larger: Table) -> None:
    """Move all edges to an empty, larger table; the old one is spent.

    A slot grows with its hash, so both tables are walked in order; the old one keeps where each edge went.
    """
    for slot in range(edges.size):
        edge = edges[slot]
        if edge["child"] != 0:
            node, token, child = np.int64(edge["node"]), np.int64(edge["token"]), np.int64(edge["child"])
            edge["older"] = put_edge(larger, node, token, child, np.int64(edge["older"]))
    for slot in range(larger.size):
        if larger[slot]["child"] != 0 and larger[slot]["older"] >= 0:
            larger[slot]["older"] = edges[larger[slot]["older"]]["older"]
    for record in nodes[:used]:
        if record["more"] >= 0:
            record["more"] = edges[record["more"]]["older"]


@kernel
def start_of(nodes: Table, child: Number) -> Number:
    """Where the string of a node or leaf occurs."""
    return ~np.int64(child) if child < 0 else np.int64(nodes[child]["start"])


@kernel
def descend(
    text: Ids, nodes: Table, edges: Table, node: Number, begin: Number, length: Number
) -> tuple[Number, Number]:
    """Go down from `node` along text[begin:begin + length], which is in the tree: (last node, child below or 0)."""
    depth = np.int64(nodes[node]["depth"])
    while depth < length:
        below = child_of(nodes, edges, node, np.int64(text[begin + depth]))
        if below < 0:
            return node, below
        depth = np.int64(nodes[below]["depth"])
        if depth > length:
            return node, below
        node = below
    return node, np.int64(0)


@kernel
def hang_leaf(state: Numbers, nodes: Table, edges: Table, node: Number, token: Number, leaf: Number) -> None:
    """Add the leaf of the suffix that begins at `leaf` to a node that has no child for `token`."""
    record = nodes[node]
    record["start"] = leaf
    if record["child_0"] == 0:
        record["token_0"] = token
        record["child_0"] = ~leaf
    elif record["child_1"] == 0:
        record["token_1"] = token
        record["child_1"] = ~leaf
    else:
        record["more"] = put_edge(edges, node, token, ~leaf, np.int64(record["more"]))
        state[EDGES] += 1


@kernel
def split(state: Numbers, text: Ids, nodes: Table, edges: Table, token: Number) -> Number:
    """Make the active point a node with the old child and the leaf of the active suffix, and return that node."""
    leaf, above, below = state[LEAF], state[ACTIVE], state[BELOW]
    depth = state[LENGTH] - leaf
    middle = np.int64(state[NODES])
    state[NODES] += 1
    record = nodes[middle]
    record["start"] = leaf
    record["depth"] = depth
    record["link"] = 0
    record["more"] = -1
    record["token_0"] = text[start_of(nodes, below) + depth]
    record["child_0"] = below
    record["token_1"] = token
    record["child_1"] = ~leaf
    replace_child(nodes, edges, above, np.int64(text[leaf + np.int64(nodes[above]["depth"])]), middle)
    return middle


@kernel
def set_link(state: Numbers, nodes: Table, target: Number, unlinked: Number) -> None:
    """Give the node of the last split its suffix link, and remember the next one that waits for its own."""
    if state[UNLINKED] != 0:
        nodes[state[UNLINKED]]["link"] = target
    state[UNLINKED] = unlinked


@kernel
def step(state: Numbers, text: Ids, nodes: Table, edges: Table, token: Number) -> bool:
    """Append one token or border; False when a table is full: grow it and call again with the same token."""
    end = state[LENGTH]
    if end == text.size:
        return False
    text[end] = token
    while state[LEAF] <= end:
        leaf, node, below = state[LEAF], state[ACTIVE], state[BELOW]
        if below == 0:
            set_link(state, nodes, node, np.int64(0))
            if token >= 0:
                state[BELOW] = child_of(nodes, edges, node, token)
                if state[BELOW] != 0:
                    break
            elif leaf == end:  # no suffix begins with a border
                state[LEAF] += 1
                break
        elif token >= 0 and text[start_of(nodes, below) + end - leaf] == token:
            break
        if state[NODES] == nodes.size or state[EDGES] * 4 >= edges.size * 3:
            return False
        if below == 0:
            hang_leaf(state, nodes, edges, node, token, leaf)
        else:
            middle = split(state, text, nodes, edges, token)
            set_link(state, nodes, middle, middle)
        state[LEAF] = leaf + 1
        if leaf < end:
            state[ACTIVE], state[BELOW] = descend(
                text, nodes, edges, np.int64(nodes[node]["link"]), leaf + 1, end - leaf - 1
            )
    state[LENGTH] = end + 1
    if state[BELOW] > 0 and nodes[state[BELOW]]["depth"] == end + 1 - state[LEAF]:
        state[ACTIVE] = state[BELOW]
        state[BELOW] = 0
    return True


@kernel
def extend(state: Numbers, text: Ids, nodes: Table, edges: Table, tokens: Ids) -> Number:
    """Append tokens in turn and return how many went in before a table was full."""
    for taken in range(tokens.size):
        if not step(state, text, nodes, edges, np.int64(tokens[taken])):
            return taken
    return tokens.size


@kernel
def children_into(
    nodes: Table, edges: Table, node: Number, out: Numbers, begin: Number, stop: Number, least: Number
) -> Number:
    """Write children with edge tokens >= least to out[begin:stop], newest first, the two oldest in any case."""
    record = nodes[node]
    slot = np.int64(record["more"])
    steps = 0
    while slot >= 0 and begin < stop - 2 and steps < CHAIN_CAP:
        if edges[slot]["token"] >= least:
            out[begin] = edges[slot]["child"]
            begin += 1
        slot = np.int64(edges[slot]["older"])
        steps += 1
    if record["child_1"] != 0 and record["token_1"] >= least:
        out[begin] = record["child_1"]
        begin += 1
    if record["child_0"] != 0 and record["token_0"] >= least:
        out[begin] = record["child_0"]
        begin += 1
    return begin


@kernel
def occurrences(nodes: Table, edges: Table, child: Number, scratch: Numbers) -> Number:
    """Open the subtree of `child` to COUNT_CAP parts or leaves; their starts stay in scratch[FRONTIER:]."""
    scratch[FRONTIER] = child
    size: Number = np.int64(1)
    at = np.int64(0)
    while at < size:
        below = scratch[FRONTIER + at]
        if below > 0 and size < COUNT_CAP and scratch[VISITS] > 0:
            scratch[VISITS] -= 1
            stop = children_into(nodes, edges, below, scratch, FRONTIER + size, np.int64(SEEN), np.int64(-1))
            scratch[FRONTIER + at] = scratch[stop - 1]
            size = stop - 1 - FRONTIER
        else:
            scratch[FRONTIER + at] = start_of(nodes, below)
            at += 1
    return size


@kernel
def newest_first(scratch: Numbers, size: Number) -> Number:
    """Bring the PER_TOKEN latest starts in scratch[FRONTIER:] to the front, falling, and return how many these are."""
    kept = min(np.int64(size), np.int64(scratch[PER_TOKEN]))
    for i in range(kept):
        best = i
        for k in range(i + 1, size):
            if scratch[FRONTIER + k] > scratch[FRONTIER + best]:
                best = k
        top = scratch[FRONTIER + best]
        scratch[FRONTIER + best] = scratch[FRONTIER + i]
        scratch[FRONTIER + i] = top
    return kept


@kernel
def place_group(rows: Table, scratch: Numbers, length: Number, kept: Number, count: Number) -> None:
    """Insert the starts of one next token among the rows of this length, latest group first; the rest falls off."""
    latest = scratch[FRONTIER] + length
    at = scratch[LEVEL]
    while at < scratch[ROWS] and rows[at]["position"] > latest:
        at += min(scratch[PER_TOKEN], np.int64(rows[at]["count"]))
    filled = min(scratch[ROWS] + kept, rows.size)
    for i in range(filled - 1, at + kept - 1, -1):
        rows[i]["position"] = rows[i - kept]["position"]
        rows[i]["match_length"] = length
        rows[i]["count"] = rows[i - kept]["count"]
    for i in range(at, min(at + kept, rows.size)):
        rows[i]["position"] = scratch[FRONTIER + i - at] + length
        rows[i]["match_length"] = length
        rows[i]["count"] = count
    scratch[ROWS] = filled


@kernel
def is_new(scratch: Numbers, token: Number) -> bool:
    """Whether no longer suffix was followed by `token`; notes the token."""
    groups = scratch[GROUPS]
    for i in range(groups):
        if scratch[SEEN + i] == token:
            return False
    scratch[SEEN + groups] = token
    scratch[GROUPS] = groups + 1
    return True


@kernel
def list_level(
    text: Ids, nodes: Table, edges: Table, node: Number, below: Number, length: Number, rows: Table, scratch: Numbers
) -> None:
    """Add the rows of the suffix that ends at `node` or in the edge to `below`: next tokens that no longer one had."""
    scratch[LEVEL] = scratch[ROWS]
    stop: Number = np.int64(BRANCHES + 1)
    scratch[BRANCHES] = below
    if below == 0:
        stop = children_into(nodes, edges, node, scratch, np.int64(BRANCHES), np.int64(FRONTIER), np.int64(0))
    for i in range(BRANCHES, stop):
        token = np.int64(text[start_of(nodes, scratch[i]) + length])
        if token >= 0 and is_new(scratch, token):
            count = occurrences(nodes, edges, scratch[i], scratch)
            kept = newest_first(scratch, count)
            place_group(rows, scratch, length, kept, count)


@kernel
def candidates(state: Numbers, text: Ids, nodes: Table, edges: Table, rows: Table, per_token: Number) -> Number:
    """Fill `rows` from the longest match to shorter suffixes by suffix links, and return how many rows there are."""
    scratch = np.empty(SEEN + rows.size + COUNT_CAP, np.int64)
    scratch[ROWS] = 0
    scratch[GROUPS] = 0
    scratch[VISITS] = VISIT_CAP
    scratch[PER_TOKEN] = per_token
    end = state[LENGTH]
    length = end - state[LEAF]
    node, below = state[ACTIVE], state[BELOW]
    while length > 0:
        list_level(text, nodes, edges, node, below, length, rows, scratch)
        if scratch[ROWS] == rows.size:
            break
        node = np.int64(0) if length > STEPWISE + 1 else np.int64(nodes[node]["link"])
        length = min(length - 1, STEPWISE)
        node, below = descend(text, nodes, edges, node, end - length, length)
    return np.int64(scratch[ROWS])


@kernel
def follow(state: Numbers, text: Ids, nodes: Table, edges: Table, tokens: Ids, places: Numbers, lengths: Ids) -> None:
    """Let another stream go on by `tokens` (>= 0); for each, note where its longest suffix in the text ends.

    Its `state` ends up as that of a tree whose text ends there, for `candidates`; the text has to end with a border.
    """
    for at, token in enumerate(tokens):
        while True:  # goes down from the active node each time: an edge may have been split
            length = state[LENGTH] - state[LEAF]
            node, below = descend(text, nodes, edges, state[ACTIVE], state[LEAF], length)
            if below == 0:
                below = child_of(nodes, edges, node, np.int64(token))
            elif text[start_of(nodes, below) + length] != token:
                below = np.int64(0)
            if below != 0 or length == 0:
                break
            state[ACTIVE], state[LEAF] = nodes[node]["link"], state[LEAF] + 1
        state[ACTIVE] = node
        if below != 0:
            state[LEAF] = start_of(nodes, below)
            state[LENGTH] = state[LEAF] + length + 1
        places[at], lengths[at] = state[LENGTH], state[LENGTH] - state[LEAF]
    state[ACTIVE], state[BELOW] = descend(text, nodes, edges, state[ACTIVE], state[LEAF], state[LENGTH] - state[LEAF])
