"""Slow, obvious twins of all kernels, under the same names: what each must give, written for the eye.

A stream is a list of token ids with -1 for a border. A tree is {node: {"start", "depth", "link", "children"}}, its
children a list of (token, child), the newest first; the leaf of the suffix that begins at i is the child ~i.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

Stream = list[int]
Texts = tuple[Stream, Stream]  # the text, and excerpts of others
Row = tuple[int, int, int]
Pair = tuple[int, int, int]  # position, match length, kind
Grown = tuple[int, int, float, int, int]
Tree = dict[int, dict[str, Any]]
Strings = dict[tuple[Any, ...], dict[Any, Any]]


# ---- lookahead/index/text_kernels.py ----


def common_suffix(stream: Stream, position: int, end: int, limit: int) -> int:
    length = 0
    while length < min(limit, position) and stream[position - 1 - length] == stream[end - 1 - length] >= 0:
        length += 1
    return length


def nearest(stream: Stream, position: int, begin: int, stop: int) -> tuple[int, int]:
    end = len(stream)
    places = [place for place in range(max(begin, 1), min(stop, end)) if stream[place] >= 0]
    found = [(common_suffix(stream, place, end, 32), -abs(place - position), -place) for place in places]
    length, _, place = max(found, default=(0, 0, 1))
    return (-place, length) if length else (-1, 0)


def nearest_each(stream: Stream, places: list[tuple[int, int]], ahead: int) -> list[tuple[int, int]]:
    return [nearest(stream, position, position - behind, position + ahead + 1) for position, behind in places]


def continuation(stream: Stream, position: int, length: int) -> Stream:
    longer = list(stream)
    for at in range(position, position + length):
        if longer[at] < 0:
            return longer[position:at]
        longer.append(longer[at])
    return (stream + longer[len(stream) :])[position : position + length]


# ---- lookahead/index/suffix_tree_kernels.py: tables ----


def slot_of(node: int, key: int, size: int) -> int:
    mixed = (node * 2654435761) ^ (key * 2246822519)
    mixed = ((mixed ^ (mixed >> 29)) % 2**32) * 739982445
    return (mixed ^ (mixed >> 31)) % 2**32 * size // 2**32


def child_of(tree: Tree, node: int, token: int) -> int:
    return dict(tree[node]["children"]).get(token, 0)


def replace_child(tree: Tree, node: int, token: int, child: int) -> None:
    tree[node]["children"] = [(t, child if t == token else c) for t, c in tree[node]["children"]]


def put_edge(taken: list[bool], home: int) -> int:
    """First free slot from `home` on, around the end."""
    size = len(taken)
    return next(slot % size for slot in range(home, home + size) if not taken[slot % size])


def rehash(tree: Tree) -> Tree:
    """A larger table changes nothing that can be seen."""
    return tree


# ---- Construction ----


def start_of(tree: Tree, child: int) -> int:
    return ~child if child < 0 else tree[child]["start"]


def descend(stream: Stream, tree: Tree, begin: int, length: int) -> tuple[int, int]:
    """Deepest node whose string begins stream[begin:begin + length], and its child towards the end of that."""
    strings = {node: stream[row["start"] : row["start"] + row["depth"]] for node, row in tree.items()}
    string = stream[begin : begin + length]
    node = max((n for n in tree if strings[n] == string[: len(strings[n])]), key=lambda n: len(strings[n]))
    rest = string[len(strings[node]) :]
    return node, child_of(tree, node, rest[0]) if rest else 0


def hang_leaf(tree: Tree, node: int, token: int, leaf: int) -> None:
    tree[node]["start"] = leaf
    tree[node]["children"].insert(0, (token, ~leaf))


def split(stream: Stream, tree: Tree, above: int, below: int, depth: int, token: int, leaf: int) -> None:
    middle = len(tree)
    old_token = stream[start_of(tree, below) + depth]
    tree[middle] = {"start": leaf, "depth": depth, "link": 0, "children": [(token, ~leaf), (old_token, below)]}
    tree[above]["children"] = [(t, middle if c == below else c) for t, c in tree[above]["children"]]


def set_link(tree: Tree, unlinked: int, target: int) -> None:
    if unlinked:
        tree[unlinked]["link"] = target


def step(stream: Stream, token: int) -> Strings:
    """All branching strings of the stream after one more token: {string: {next token: leaves below}}.

    A suffix is a leaf when it begins before the longest match, and not with a border. It runs to the end of its
    document, whose border is another token for each suffix.
    """
    stream = [*stream, token]
    leaves = [i for i in range(len(stream) - match_length(stream)) if stream[i] >= 0]
    strings: Strings = {(): {}}
    for i in leaves:
        stop = next((k for k in range(i, len(stream)) if stream[k] < 0), len(stream))
        word = (*stream[i:stop], ("border", i))
        for depth in range(len(word)):
            strings.setdefault(word[:depth], {}).setdefault(word[depth], set()).add(i)
    return {string: after for string, after in strings.items() if len(after) > 1 or not string}


def extend(stream: Stream, tokens: Stream) -> Strings:
    """As `step` by `step`."""
    return step([*stream, *tokens[:-1]], tokens[-1])


# ---- Queries ----


def children_into(tree: Tree, node: int, room: int, least: int) -> list[int]:
    """Newest first; where room is short the two oldest take precedence."""
    *newer, second, first = [None, None, *tree[node]["children"]][-max(2, len(tree[node]["children"])) :]
    chain = [pair for pair in newer if pair[0] >= least][: room - 2]
    return [pair[1] for pair in [*chain, second, first] if pair and pair[0] >= least]


def match_length(stream: Stream) -> int:
    end = len(stream)
    return max((common_suffix(stream, place, end, end) for place in range(end)), default=0)


def match(stream: Stream) -> list[int]:
    """All places that may be named: after the longest repeated suffix, with a token if there is any; [-1] for none."""
    end, longest = len(stream), match_length(stream)
    places = [place for place in range(end) if longest and common_suffix(stream, place, end, longest) == longest]
    return [place for place in places if stream[place] >= 0] or places or [-1]


def occurrences(tree: Tree, child: int) -> set[int]:
    """All leaves below."""
    if child < 0:
        return {~child}
    return {leaf for _, below in tree[child]["children"] for leaf in occurrences(tree, below)}


def newest_first(starts: Stream, per_token: int) -> Stream:
    return sorted(starts, reverse=True)[:per_token]


def place_group(groups: list[list[Row]], group: list[Row], limit: int) -> list[Row]:
    rows = [row for rows in sorted([*groups, group], reverse=True) for row in rows]
    return rows[:limit]


def is_new(seen: Stream, token: int) -> bool:
    return token not in seen


def list_level(stream: Stream, length: int, longest: int, per_token: int, seen: Stream) -> list[Row]:
    """Rows (position, match length, count) of one suffix, from what begins before the longest match."""
    end = len(stream)
    places = [p for p in range(length, end - longest + length) if common_suffix(stream, p, end, length) == length]
    groups: dict[int, list[int]] = {}
    for place in places:
        if stream[place] >= 0 and is_new(seen, stream[place]):
            groups.setdefault(stream[place], []).append(place)
    newest = [[(p, length, min(32, len(g))) for p in newest_first(g, per_token)] for g in groups.values()]
    return [row for rows in sorted(newest, reverse=True) for row in rows]


def candidates(stream: Stream, limit: int, per_token: int, stepwise: int = 24) -> list[Row]:
    longest = match_length(stream)
    rows: list[Row] = []
    for length in [longest, *range(min(stepwise, longest - 1), 0, -1)] if longest else []:
        rows += list_level(stream, length, longest, per_token, [stream[p] for p, _, _ in rows])
    return rows[:limit]


# ---- lookahead/index/static_corpus_kernels.py; `said` is the end of another stream, the last token first ----


def ordered(stream: Stream) -> Stream:
    """The places where a token stands behind a token, sorted by what stands before them, read backwards."""
    places = [place for place in range(1, len(stream)) if stream[place] >= 0 and stream[place - 1] >= 0]
    return sorted(places, key=lambda place: stream[:place][::-1])


def place_at(order: Stream, rank: int, size: int) -> int:
    return order[rank] if order[rank] in range(size) else 0


def shared(stream: Stream, said: Stream, position: int) -> int:
    pairs = zip(stream[:position][::-1], said, strict=False)
    return len(list(itertools.takewhile(lambda pair: pair[0] == pair[1], pairs)))


def precedes(stream: Stream, said: Stream, position: int) -> bool:
    return stream[:position][::-1][: len(said)] < said


def search(stream: Stream, said: Stream) -> tuple[int, int]:
    order = ordered(stream)
    rank = sum(precedes(stream, said, place) for place in order)
    return rank, max((shared(stream, said, place) for place in order), default=0)


def reach(stream: Stream, order: Stream, said: Stream, rank: int, step: int, length: int) -> int:
    ranks = range(rank, len(order)) if step > 0 else range(rank, -1, -1)
    share = [shared(stream, said[:length], order[one]) == length for one in ranks]
    return [*share, False].index(False)


def tally(stream: Stream, places: Stream, seen: Stream) -> list[Stream]:
    """Places by next token, the token that comes first in the order first."""
    groups: dict[int, Stream] = {}
    for place in places:
        if is_listed(seen, stream[place]) < 0:
            groups.setdefault(stream[place], []).append(place)
    return list(groups.values())


def is_listed(tokens: Stream, token: int) -> int:
    return tokens.index(token) if token in tokens else -1


def list_groups(groups: list[Stream], length: int, per_token: int) -> list[Row]:
    by_count = sorted(groups, key=lambda places: -len(places))
    return [(place, length, len(places)) for places in by_count for place in places[:per_token]]


def suggest(stream: Stream, said: Stream, limit: int, per_token: int) -> list[Row]:
    order, rows = ordered(stream), list[Row]()
    for length in range(len(said), 0, -1):
        places = [place for place in order if shared(stream, said, place) == length]
        rows += list_groups(tally(stream, places, [stream[place] for place, _, _ in rows]), length, per_token)
    return rows[:limit]


# ---- From tables to a tree, by reading them from end to end ----


def tree_of(nodes: np.ndarray, used: int, edges: np.ndarray) -> Tree:
    tree: Tree = {}
    for number in range(used):
        row = {field: int(nodes[number][field]) for field in nodes.dtype.names}
        children = [(row["token_0"], row["child_0"]), (row["token_1"], row["child_1"])]
        children = [pair for pair in children if pair[1]]
        chain = []
        slot = row["more"]
        while slot >= 0:
            assert edges[slot]["node"] == number
            chain.append((int(edges[slot]["token"]), int(edges[slot]["child"])))
            slot = int(edges[slot]["older"])
        tree[number] = {key: row[key] for key in ("start", "depth", "link")}
        tree[number]["children"] = [*chain, *reversed(children)]
    return tree


def follow(stream: Stream, said: Stream) -> list[int]:
    """After each token of another stream, the length of its longest end that the stream holds."""
    ends = [[said[begin : at + 1] for begin in range(at + 1)] for at in range(len(said))]
    held = {tuple(stream[begin:end]) for begin in range(len(stream)) for end in range(begin + 1, len(stream) + 1)}
    return [max((len(end) for end in found if tuple(end) in held), default=0) for found in ends]


# ---- lookahead/draft/growth_kernels.py ----


def place_of(length: int, position: int, depth: int) -> int:
    """Walk on token by token; a step over the end goes back to where the copy began."""
    place = position
    for _ in range(depth):
        place = place + 1 if place + 1 < length else position
    return place


def walk_on(texts: Texts, position: int, depth: int) -> tuple[int, int]:
    """Place and token `depth` after a position: in the text, or from its length on in the excerpts; -1 behind them."""
    stream, excerpts = texts
    if position < len(stream):
        place = place_of(len(stream), position, depth)
        return place, stream[place]
    return position + depth, dict(enumerate(excerpts, len(stream))).get(position + depth, -1)


def token_at(texts: Texts, position: int, depth: int) -> int:
    return walk_on(texts, position, depth)[1]


def divide(
    texts: Texts,
    places: list[Pair],
    group: list[int],
    depth: int,
    prob: float,
    tables: Any,
    width: int,
    vocabulary: int,
) -> list[tuple[list[int], float]]:
    """Groups by the token `depth` after each place, each with its path probability: [(numbers of places, prob)].

    `places` are (position, match length, kind); `group` holds the numbers of those that share the path so far.
    """
    by_token: dict[int, list[int]] = {}
    for one in group:
        by_token.setdefault(token_at(texts, places[one][0], depth), []).append(one)
    groups = [group for token, group in by_token.items() if 0 <= token < vocabulary][:width]
    lengths = [min(64, places[one][1] + depth) for one, *_ in groups]
    first, later, *_ = tables
    found = []
    for rank, (group, length) in enumerate(zip(groups, lengths, strict=True)):
        role, raw = (0 if rank == 0 else 1), first[min(rank, 3)][length][max(lengths[: rank + 1])]
        if depth > 0 and rank == 0:
            role, raw = 2, later[length]
        found.append((group, prob * chance_of(tables, places[group[0]][2], role, length, float(raw))))
    return found


def bucket_of(length: int) -> int:
    return [index for index, least in enumerate((0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)) if least <= length][-1]


def corrected(chance: float, cell: Any) -> float:
    """Odds times observed odds over expected odds, where the expectation counts as one rare outcome does."""
    if not cell["trials"]:
        return chance
    expected = np.clip(cell["expected"] / cell["trials"], 0.0001, 0.9999)
    strength = 1 / min(expected, 1 - expected)
    observed = np.clip((cell["hits"] + strength * expected) / (cell["trials"] + strength), 0.0001, 0.9999)
    odds = observed / (1 - observed) / (expected / (1 - expected))
    return float(chance * odds / (1 - chance + chance * odds))


def chance_of(tables: Any, kind: int, role: int, length: int, raw: float) -> float:
    for cell in cells_of(tables, kind, role, length):
        raw = corrected(raw, cell)
    return raw


def cells_of(tables: Any, kind: int, role: int, length: int) -> list[Any]:
    """All copies, or all else in this role; all matches of this length; those of this kind."""
    evidence = tables[2]
    return [evidence[0, 0 if role == 2 else role, 13], *(evidence[one, role, bucket_of(length)] for one in (0, kind))]


def observe(tables: Any, kind: int, role: int, length: int, raw: float, hit: bool) -> None:
    expected = raw
    for cell, outcomes in zip(cells_of(tables, kind, role, length), (8, 8, 25), strict=True):
        before = cell.copy()
        for name, value in (("hits", hit), ("expected", expected), ("trials", 1)):
            cell[name] = cell[name] * (1 - min(raw, 1 - raw) / outcomes) + value
        expected = corrected(expected, before)


def score(texts: Texts, places: list[Pair], tables: Any, said: list[int]) -> None:
    """Observe the first guess of each token, then for each later token what the first place still right foresaw."""
    first, later, *_ = tables
    by_token: dict[int, Pair] = {}
    for place in places:
        token = token_at(texts, place[0], 0)
        if token >= 0:
            by_token.setdefault(token, place)
    longest, left = 0, 1.0
    for rank, (token, (_, match, kind)) in enumerate(by_token.items()):
        length = min(match, 64)
        longest = max(longest, length)
        raw = first[min(rank, 3)][length][longest]
        left -= chance_of(tables, kind, min(rank, 1), length, float(raw))
        observe(tables, kind, min(rank, 1), length, float(raw), token == said[0])
    for token, share in successors_of(tables, texts[0][-1]):
        if token not in by_token:
            observe(tables, 1, 3, int(64 * share), recycled(share, left), token == said[0])
    for depth in range(1, len(said)):
        foreseen = [[token_at(texts, place[0], at) for at in range(depth + 1)] for place in places]
        right = [one for one, tokens in enumerate(foreseen) if tokens[:depth] == said[:depth] and tokens[depth] >= 0]
        if right:
            length = min(places[right[0]][1] + depth, 64)
            hit = foreseen[right[0]][depth] == said[depth]
            observe(tables, places[right[0]][2], 2, length, float(later[length]), hit)


def grow(
    texts: Texts, places: list[Pair], tables: Any, budget: int, width: int, least: float, vocabulary: int
) -> list[Grown]:
    """Nodes (token, parent, prob, number of the place, position): again and again the likeliest of all that may come.

    Among equally likely ones the place of the lower number comes first, then what sprouted first; these have -1 for the
    number and the position.
    """
    nodes: list[Grown] = []
    frontier: list[Any] = []
    groups, last, path, depth = [*range(len(places))], texts[0][-1], 1.0, 0
    while len(nodes) < budget:
        parts = divide(texts, places, groups, depth, path, tables, width, vocabulary) if groups else []
        node = len(nodes) - 1
        at = [(*walk_on(texts, places[group[0]][0], depth), group, prob) for group, prob in parts]
        frontier += [(token, node, prob, group[0], place, group, depth) for place, token, group, prob in at]
        taken = [(token, prob) for _, token, _, prob in at]
        found = sprout(tables, last, path, taken, least, vocabulary)
        frontier += [(token, node, prob, -1, -1, [], 0) for token, prob in found]
        children = [parent for _, parent, *_ in nodes]
        frontier = [row for row in frontier if children.count(row[1]) < width]
        if not frontier:
            break
        chosen = min(frontier, key=lambda row: (-row[2], row[3] < 0, row[3]))
        if chosen[2] < least:
            break
        frontier.remove(chosen)
        nodes.append(chosen[:5])
        last, _, path, _, _, groups, depth = chosen
        depth += 1
    return nodes


def sprout(
    tables: Any, last: int, path: float, taken: list[tuple[int, float]], least: float, vocabulary: int
) -> list[tuple[int, float]]:
    """Successors of the last token that nobody foresees, with the probability of the path to each."""
    left = 1 - sum(prob for _, prob in taken) / path
    tokens = [token for token, _ in taken]
    found = [
        (token, path * recycled_chance(tables, share, left))
        for token, share in successors_of(tables, last)
        if token not in tokens and token < vocabulary
    ]
    return [(token, prob) for token, prob in found if prob >= least]


def successors_of(tables: Any, token: int) -> list[tuple[int, float]]:
    rows = tables[3]
    if not 0 <= token < len(rows):
        return []
    return [(int(row["token"]), float(row["share"])) for row in rows[token] if row["share"] > 0]


def recycled(share: float, left: float) -> float:
    return float(np.float32(min(share, 0.9) * max(left, 0.001)))


def recycled_chance(tables: Any, share: float, left: float) -> float:
    return chance_of(tables, 1, 3, int(64 * share), recycled(share, left))


# ---- lookahead/draft/recycling_kernels.py ----


def blend(row: dict[int, float], found: dict[int, float], kept: int) -> dict[int, float]:
    """Half of the old and half of the new, the `kept` likeliest of them; all of the new where there is no old."""
    half = 0.5 if row else 1
    both = {token: row.get(token, 0) * 0.5 + found.get(token, 0) * half for token in [*row, *found]}
    return dict(sorted(both.items(), key=lambda pair: -pair[1])[:kept])
