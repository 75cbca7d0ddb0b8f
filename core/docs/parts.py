"""Draws parts.svg, the picture of the parts: `python3 core/docs/parts.py > core/docs/parts.svg`."""

from xml.sax.saxutils import escape

WIDTH, HEIGHT = 860, 330
LINE = 17

# (x, y, width, height, colour, title, lines)
BOXES = [
    (10, 60, 200, 190, "#e8f0fe", "recording of one worker",
     ["PyTorch's profiler", "TensorFlow, Horovod,", "Chakra", "measured layers", "or a network of the zoo"]),
    (260, 100, 140, 110, "#fef7e0", "profile", ["operations", "and dependencies,", "recorded steps"]),
    (430, 20, 200, 120, "#e6f4ea", "core: the simulation", ["every transfer and", "computation of a step,", "for W workers"]),
    (430, 180, 200, 120, "#f3e8fd", "who asks it", ["stepcast: command line", "stepcastd: gRPC server", "for schedulers, Slurm,", "Kubernetes"]),
    (680, 60, 170, 190, "#fce8e6", "answers", ["examples/s of 1 .. W", "number of workers", "what holds a job back", "settings to change", "a page to show"]),
]  # fmt: skip

# (x1, y1, x2, y2, label)
ARROWS = [
    (210, 155, 255, 155, "import"),
    (400, 135, 425, 95, ""),
    (400, 175, 425, 225, ""),
    (530, 180, 530, 145, "asks"),
    (630, 90, 675, 130, ""),
    (630, 235, 675, 190, ""),
]


def text(x, y, words, weight="normal"):
    return f'<text x="{x}" y="{y}" font-weight="{weight}">{escape(words)}</text>'


def main():
    print(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="13" role="img">')
    print("<title>The parts of Stepcast: a recording becomes a profile, the core simulates it, and clients get answers</title>")
    print('<defs><marker id="end" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">')
    print('<path d="M0 0 L8 4 L0 8 z" fill="#5f6368"/></marker></defs>')
    print(f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>')
    for x, y, width, height, colour, title, lines in BOXES:
        print(f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="8" fill="{colour}" stroke="#5f6368"/>')
        print(text(x + 12, y + 24, title, "bold"))
        for index, line in enumerate(lines):
            print(text(x + 12, y + 50 + LINE * index, line))
    for x1, y1, x2, y2, label in ARROWS:
        print(f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="#5f6368" stroke-width="1.5" marker-end="url(#end)"/>')
        if label:
            print(text(min(x1, x2) + 4, min(y1, y2) + (20 if x1 == x2 else -8), label))
    print("</svg>")


if __name__ == "__main__":
    main()
