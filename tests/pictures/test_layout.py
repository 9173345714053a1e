"""Layered drawings: layers by the longest path, few crossings, straight wires."""

from nram.pictures.layout import Box, Wire, assign_layers, draw


def box(layer: int, inputs: int = 1, rank: int | None = None) -> Box:
    height = 30 if inputs < 2 else 44
    return Box(60, height, tuple((height - 20 * (inputs - 1)) / 2 + 20 * i for i in range(inputs)), layer, rank)


def test_a_box_stands_after_the_longest_way_to_it():
    wires = [(0, 1), (1, 2), (2, 3), (0, 3)]
    assert assign_layers(4, 1, [(a, b, 1) for a, b in wires], wires) == [0, 1, 2, 3]


def test_a_box_without_inputs_stands_just_before_who_needs_it():
    wires = [(0, 1), (1, 3), (2, 3)]
    assert assign_layers(4, 1, [(a, b, 1) for a, b in wires], wires) == [0, 1, 1, 2]


def test_an_arc_without_a_wire_keeps_the_order():
    assert assign_layers(3, 0, [(0, 1, 1), (1, 2, 0)], []) == [0, 1, 1]


def test_a_chain_is_one_straight_line():
    boxes = [box(layer) for layer in range(5)]
    drawing = draw(boxes, [Wire(i, i + 1, 0) for i in range(4)])
    assert len({corner.y for corner in drawing.corners}) == 1
    assert all(len({point.y for point in path}) == 1 for path in drawing.paths)
    assert [corner.x for corner in drawing.corners] == sorted(corner.x for corner in drawing.corners)


def test_parallel_wires_given_in_a_tangled_order_do_not_cross():
    # Four sources whose middle boxes are listed upside down.
    boxes = [*(box(0, 0, rank) for rank in range(4)), *(box(1) for _ in range(4)), *(box(2, 1, r) for r in range(4))]
    wires = [Wire(i, 7 - i, 0) for i in range(4)] + [Wire(7 - i, 8 + i, 0) for i in range(4)]
    drawing = draw(boxes, wires)
    heights = [drawing.corners[7 - i].y for i in range(4)]
    assert heights == sorted(heights)
    assert all(len({point.y for point in path}) == 1 for path in drawing.paths)


def test_wires_of_one_source_share_their_way_and_part_at_a_branch():
    boxes = [box(0, 0), box(1), box(2), box(3), box(3)]
    wires = [Wire(0, 1, 0), Wire(1, 2, 0), Wire(0, 3, 0), Wire(0, 4, 0)]
    drawing = draw(boxes, wires)
    third, fourth = drawing.paths[2], drawing.paths[3]
    shared = drawing.fresh[3]
    assert shared > 0
    assert third[: shared + 1] == fourth[: shared + 1]
    assert fourth[shared] in drawing.branches


def test_nothing_to_draw_takes_no_room():
    drawing = draw([], [])
    assert (drawing.width, drawing.height, drawing.paths) == (0, 0, ())
