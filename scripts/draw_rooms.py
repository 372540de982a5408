#!/usr/bin/env python3
"""Draws the libraries and their rooms as docs/pictures/rooms.svg, from the order in check_includes.py and today's includes.

usage: scripts/draw_rooms.py           writes the picture
       scripts/draw_rooms.py --check   ends with 1 if the picture shows other rooms or arrows than the code has

A panel is a library, and a box in it is a room. Each room names the rooms of its library that it includes; all of them lie below it.
"""
import sys
import textwrap
from html import escape
from pathlib import Path

import check_includes

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs/pictures/rooms.svg"

# Pixels. The columns from left to right, each with its libraries from the top down.
COLUMNS = (("lib/launch", "lib/prototxt"), ("apps", "lib/cuda", "lib/runtime"), ("lib/comm", "lib/job", "lib/base"))
PANEL_WIDTH, GAP, MARGIN, TITLE_HEIGHT = 368, 16, 16, 46
ROOM_TITLE, LINE, ROOM_BOTTOM, ROOM_GAP = 17, 14, 7, 4
LINE_LENGTH = 56  # characters that fit a box
NAME_SIZE, TEXT_SIZE = 14, 11
PAPER, PANEL, ROOM, BORDER, INK, FAINT = "#ffffff", "#f6f8fa", "#ffffff", "#8c959f", "#1f2328", "#57606a"
FONTS = "system-ui, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"


def room_includes():
    """The rooms that each room includes, as {(library, room): rooms}; "" is what lies directly in the library's folder."""
    arrows = {}
    for path, _, bracket, name in check_includes.read_includes(ROOT):
        target = check_includes.resolve(ROOT, path, name) if bracket == '"' else None
        library = check_includes.part_of(path)
        if target is None or library != check_includes.part_of(target):
            continue
        here, there = check_includes.room_of(library, path), check_includes.room_of(library, target)
        if here != there:
            arrows.setdefault((library, here), set()).add(there)
    return arrows


def rooms_from_the_top(library):
    """The rooms of a library; "" stands for files directly in its folder, if there are any."""
    if library not in check_includes.ROOMS:
        return []
    loose = [""] if any(file.suffix in check_includes.SUFFIXES for file in (ROOT / library).iterdir()) else []
    return [*loose, *reversed(check_includes.ROOMS[library])]


def text(x, y, words, size, color, weight="normal", anchor="start"):
    return (f'<text x="{x}" y="{y}" font-size="{size}" fill="{color}" font-weight="{weight}" text-anchor="{anchor}">'
            f"{escape(words)}</text>")


def describe_includes(library, room, included):
    """The line of a room: what it includes or, where that is shorter, which of the rooms below it does not include."""
    rooms = check_includes.ROOMS[library]
    below = rooms[:rooms.index(room)] if room else rooms
    used = [other for other in below if other in included]
    unused = [other for other in below if other not in included]
    if not used:
        return "includes no other room"
    if not unused:
        return "includes every room below"
    return min(f"includes {', '.join(used)}", f"includes every room below but {', '.join(unused)}", key=len)


def draw_room(library, room, lines, x, y):
    name = room or library.split("/")[-1] + ".*, directly in the folder"
    return [f'<rect x="{x}" y="{y}" width="{PANEL_WIDTH - 2 * GAP}" height="{room_height(lines)}" rx="4" fill="{ROOM}" stroke="{BORDER}"/>',
            text(x + 10, y + 16, name, NAME_SIZE, INK, "600"),
            *(text(x + 10, y + ROOM_TITLE + number * LINE, line, TEXT_SIZE, FAINT) for number, line in enumerate(lines, 1))]


def room_height(lines):
    return ROOM_TITLE + len(lines) * LINE + ROOM_BOTTOM


def draw_panel(library, arrows, x, top):
    """The panel of a library, and the y below it."""
    rooms, y = [], top + TITLE_HEIGHT
    for room in rooms_from_the_top(library):
        lines = textwrap.wrap(describe_includes(library, room, arrows.get((library, room), ())), LINE_LENGTH)
        rooms += draw_room(library, room, lines, x + GAP, y)
        y += room_height(lines) + ROOM_GAP
    y += GAP // 2
    allowed = ", ".join(check_includes.MAY_INCLUDE[library])
    return [f'<rect x="{x}" y="{top}" width="{PANEL_WIDTH}" height="{y - top}" rx="6" fill="{PANEL}" stroke="{BORDER}"/>',
            text(x + GAP, top + 21, library, 16, INK, "700"),
            text(x + GAP, top + 37, f"may include {allowed}" if allowed else "includes none of the others", TEXT_SIZE, FAINT),
            *rooms], y


def draw():
    arrows = room_includes()
    drawing, bottom = [], 0
    for column, libraries in enumerate(COLUMNS):
        y = MARGIN
        for library in libraries:
            panel, y = draw_panel(library, arrows, MARGIN + column * (PANEL_WIDTH + GAP), y)
            drawing += panel
            y += GAP
        bottom = max(bottom, y)
    width = 2 * MARGIN + len(COLUMNS) * PANEL_WIDTH + (len(COLUMNS) - 1) * GAP
    head = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{bottom}" viewBox="0 0 {width} {bottom}" '
            f'font-family="{FONTS}">',
            "<title>The libraries of fleetrun and their rooms</title>",
            f'<rect width="{width}" height="{bottom}" fill="{PAPER}"/>']
    return "\n".join([*head, *drawing, "</svg>", ""])


def main(arguments):
    if arguments not in ([], ["--check"]):
        print(__doc__.strip(), file=sys.stderr)
        return 2
    picture = draw()
    if not arguments:
        PICTURE.write_text(picture, encoding="utf-8")
        return 0
    if PICTURE.is_file() and PICTURE.read_text(encoding="utf-8") == picture:
        return 0
    print("docs/pictures/rooms.svg: differs from the includes; scripts/draw_rooms.py draws it anew")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
