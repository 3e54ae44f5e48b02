"""The dataflow of a job as a picture: legs, then stages with their operators, then outputs, from left to right."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from sash.console.pages import formats
from sash.console.pages.markup import Markup, join, tag
from sash.console.pages.model import Values
from sash.console.plan_figures import skew

_W, _H, _GAP_X, _GAP_Y, _PAD, _HEAD = 186, 62, 84, 22, 14, 40


@dataclass
class Block:
    """A stage, a leg or an output: nodes by column, at a place of the picture."""

    nodes: list[list[Values]]
    stage: Values | None = None
    x: int = 0
    y: int = 0

    @property
    def width(self) -> int:
        """In pixels."""
        return len(self.nodes) * _W + (len(self.nodes) - 1) * _GAP_X + (2 * _PAD if self.stage is not None else 0)

    @property
    def height(self) -> int:
        """In pixels."""
        most = max(len(column) for column in self.nodes)
        return most * _H + (most - 1) * _GAP_Y + (_PAD + _HEAD if self.stage is not None else 0)


def depths(nodes: list[str], edges: list[tuple[str, str]]) -> dict[str, int]:
    """Return the longest way from a source to each node.

    >>> depths(["a", "b", "c"], [("a", "b"), ("b", "c"), ("a", "c")])
    {'a': 0, 'b': 1, 'c': 2}
    """
    found = dict.fromkeys(nodes, 0)
    for _ in nodes:
        moved = False
        for begin, end in edges:
            if begin in found and end in found and found[end] <= found[begin]:
                found[end] = found[begin] + 1
                moved = True
        if not moved:
            break
    return found


def plan_picture(plan: Values) -> Markup:
    """Draw the plan of a job."""
    blocks = _blocks(plan)
    places = _place(blocks)
    width = max((block.x + block.width for block in blocks.values()), default=0) + 2
    height = max((block.y + block.height for block in blocks.values()), default=0) + 2
    busiest = max((node.get("seconds") or 0 for node in plan["nodes"]), default=0)
    drawn = [_stage(block) for block in blocks.values() if block.stage is not None]
    lines = [_edge(edge, places) for edge in plan["edges"] if edge["from"] in places and edge["to"] in places]
    nodes = [_node(node, places[node["id"]], busiest) for node in plan["nodes"] if node["id"] in places]
    labels = [_edge_label(edge, places) for edge in plan["edges"] if edge["from"] in places and edge["to"] in places]
    svg = tag(
        "svg",
        drawn,
        lines,
        nodes,
        labels,
        width=width,
        height=height,
        viewBox=f"0 0 {width} {height}",
        role="img",
        aria_label="dataflow",
        style=f"width: min(100%, {width}px); min-width: {width * 2 // 3}px; height: auto",
    )
    return tag("div", svg, class_="picture")


def _blocks(plan: Values) -> dict[str, Block]:
    """The blocks by name; a node that no stage has is a block of its own."""
    block_of = {
        node["id"]: node["id"] if node.get("stage") is None else f"stage:{node['stage']}" for node in plan["nodes"]
    }
    members: dict[str, list[Values]] = defaultdict(list)
    for node in plan["nodes"]:
        members[block_of[node["id"]]].append(node)
    stages = {f"stage:{stage['index']}": stage for stage in plan.get("stages") or []}
    blocks = {}
    for name, nodes in members.items():
        ids = [node["id"] for node in nodes]
        inner = [(edge["from"], edge["to"]) for edge in plan["edges"] if edge["from"] in ids and edge["to"] in ids]
        columns: dict[int, list[Values]] = defaultdict(list)
        for node, depth in zip(nodes, depths(ids, inner).values(), strict=True):
            columns[depth].append(node)
        index = nodes[0].get("stage")
        blocks[name] = Block(
            [columns[d] for d in sorted(columns)], None if index is None else stages.get(name, {"index": index})
        )
    between = [
        (block_of[e["from"]], block_of[e["to"]]) for e in plan["edges"] if e["from"] in block_of and e["to"] in block_of
    ]
    column_of = depths(list(blocks), [(a, b) for a, b in between if a != b])
    last = max(column_of.values(), default=0)
    for name, block in blocks.items():
        if block.nodes[0][0].get("kind") == "output":
            column_of[name] = last
    by_column: dict[int, list[Block]] = defaultdict(list)
    for name, block in blocks.items():
        by_column[column_of[name]].append(block)
    tallest = max((_tall(found) for found in by_column.values()), default=0)
    x = 1
    for column in sorted(by_column):
        y = 1 + (tallest - _tall(by_column[column])) // 2
        for block in by_column[column]:
            block.x, block.y = x, y
            y += block.height + _GAP_Y
        x += max(block.width for block in by_column[column]) + _GAP_X
    return blocks


def _tall(blocks: list[Block]) -> int:
    return sum(block.height for block in blocks) + _GAP_Y * (len(blocks) - 1)


def _place(blocks: dict[str, Block]) -> dict[str, tuple[int, int]]:
    places = {}
    for block in blocks.values():
        left, top = (block.x + _PAD, block.y + _HEAD) if block.stage is not None else (block.x, block.y)
        room = block.height - (_PAD + _HEAD if block.stage is not None else 0)
        for i, column in enumerate(block.nodes):
            used = len(column) * _H + (len(column) - 1) * _GAP_Y
            for j, node in enumerate(column):
                places[node["id"]] = (left + i * (_W + _GAP_X), top + (room - used) // 2 + j * (_H + _GAP_Y))
    return places


def _stage(block: Block) -> Markup:
    stage = block.stage or {}
    by = stage.get("partition")
    key = f" by {by if isinstance(by, str) else ', '.join(map(str, by))}" if by else ""
    head = _cut(f"Stage {stage.get('index')}{key}", (block.width - 20) // 8)
    shards = stage.get("shards") or []
    loads = [shard.get("seconds") or 0 for shard in shards]
    mean = sum(loads) / len(loads) if loads else 0
    bars, room = [], min(len(loads), 40)
    for i, load in enumerate(loads[:room]):
        tall = 12 * load / max(loads) if max(loads) > 0 else 0
        hot = " hot" if mean and load > 2 * mean else ""
        tip = tag(
            "title",
            f"shard {shards[i].get('shard', i)}: {formats.seconds(load)}, {formats.count(shards[i].get('state_rows'))} rows in state",
        )
        bars.append(
            tag(
                "rect",
                tip,
                x=block.x + 12 + i * 6,
                y=f"{block.y + 35 - tall:.1f}",
                width=4,
                height=f"{max(1, tall):.1f}",
                class_=f"shard{hot}",
            )
        )
    uneven = skew(shards)
    counted = f"{len(loads)} shards" if len(loads) != 1 else "1 shard"
    text = "" if not loads else counted if uneven is None else f"{counted}, skew {uneven:.1f}"
    return join(
        [
            tag("rect", x=block.x, y=block.y, width=block.width, height=block.height, rx=8, class_="stage"),
            tag(
                "text",
                tag("title", f"strategy {stage.get('strategy')}"),
                head,
                x=block.x + 12,
                y=block.y + 17,
                class_="title",
            ),
            bars,
            tag("text", text, x=block.x + 18 + room * 6, y=block.y + 34, class_="soft", font_size=11),
        ]
    )


def _node(node: Values, place: tuple[int, int], busiest: float) -> Markup:
    x, y = place
    heat = (node.get("seconds") or 0) / busiest if busiest else 0
    kind = {"leg": "leg", "output": "output"}.get(node.get("kind") or "", "node")
    kept = (
        ""
        if node.get("state_rows") is None
        else f"{formats.count(node['state_rows'])} rows · {formats.size(node.get('state_bytes'))}"
        if node["state_rows"] or node.get("state_bytes")
        else "no state"
    )
    spent = formats.seconds(node["seconds"]) if node.get("seconds") else ""
    tip = "\n".join(
        str(text)
        for text in (node.get("label"), node.get("detail"), node.get("choice"), spent and f"{spent} in the last batch")
        if text
    )
    shared = node.get("shared") or 0
    return tag(
        "g",
        tag("title", tip),
        tag("rect", x=x, y=y, width=_W, height=_H, rx=6, class_=kind),
        tag("rect", x=x, y=y, width=_W, height=_H, rx=6, class_="heat", opacity=f"{0.3 * heat:.2f}")
        if heat > 0.05
        else None,
        tag(
            "text",
            _cut(str(node.get("label") or node["id"]), 16 if shared > 1 else 22),
            x=x + 10,
            y=y + 19,
            class_="title",
        ),
        tag("text", f"\N{MULTIPLICATION SIGN}{shared}", x=x + _W - 10, y=y + 19, text_anchor="end", class_="soft")
        if shared > 1
        else None,
        tag("text", _cut(str(node.get("detail") or ""), 25), x=x + 10, y=y + 36, class_="soft"),
        tag(
            "text",
            kept or ("" if node.get("rows_per_second") is None else formats.rate(node["rows_per_second"])),
            x=x + 10,
            y=y + 53,
            class_="soft",
            font_size=11,
        ),
        tag("text", spent, x=x + _W - 8, y=y + 53, text_anchor="end", class_="soft", font_size=11),
        _shares(node.get("shards") or [], x, y),
        data_node=node["id"],
    )


def _shares(shards: list[Values], x: int, y: int) -> list[Markup]:
    """Each shard's share of an operator's time, side by side along its lower edge."""
    whole = sum(shard.get("seconds") or 0 for shard in shards)
    if len(shards) < 2 or not whole:
        return []
    drawn, left = [], float(x + 4)
    for shard in shards:
        width = (_W - 8) * (shard.get("seconds") or 0) / whole
        tip = f"shard {shard['shard']}: {formats.seconds(shard['seconds'])}, {formats.count(shard['state_rows'])} rows in state"
        if width >= 1:
            drawn.append(
                tag(
                    "rect",
                    tag("title", tip),
                    x=f"{left:.1f}",
                    y=y + _H - 4,
                    width=f"{width - 1:.1f}",
                    height=3,
                    class_="part",
                )
            )
        left += width
    return drawn


def _ends(edge: Values, places: dict[str, tuple[int, int]]) -> tuple[int, int, int, int]:
    (a, b), (c, d) = places[edge["from"]], places[edge["to"]]
    return a + _W, b + _H // 2, c, d + _H // 2


def _edge(edge: Values, places: dict[str, tuple[int, int]]) -> Markup:
    x, y, to_x, to_y = _ends(edge, places)
    bend = max(30, (to_x - x) // 2)
    path = f"M{x} {y}C{x + bend} {y} {to_x - bend} {to_y} {to_x - 6} {to_y}"
    head = f"M{to_x} {to_y}l-8 -4v8z"
    return join([tag("path", d=path, class_="edge"), tag("path", d=head, class_="head")])


def _edge_label(edge: Values, places: dict[str, tuple[int, int]]) -> Markup:
    """The update pattern and the rows per second, at the end of the edge, where edges of one node part."""
    x, y, to_x, to_y = _ends(edge, places)
    middle, above = (x + to_x) // 2, (y + to_y) // 2
    if to_x - x > 2 * _GAP_X:
        middle, above = to_x - _GAP_X // 2, to_y + _aside(y - to_y)
    pattern = str(edge.get("pattern") or "")
    flow = "" if edge.get("rows_per_second") is None else formats.rate(edge["rows_per_second"])
    tip = tag("title", f"{pattern}, rows end by {edge.get('expiry')}" if edge.get("expiry") else pattern)
    return tag(
        "g",
        tip,
        tag("text", _cut(pattern, 15), x=middle, y=above - 5, text_anchor="middle", font_size=11, class_="on"),
        tag("text", flow, x=middle, y=above + 14, text_anchor="middle", class_="soft on", font_size=11),
    )


def _aside(difference: int) -> int:
    """How far the label of a long edge is from its end, on the side from which the edge comes: other edges may end there."""
    return 0 if abs(difference) < _H // 2 else 26 if difference > 0 else -26


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
