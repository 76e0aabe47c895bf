"""What the scripts that compare Ditron with its peers share: running programs until a deadline, geometric means, tables as Markdown and plots
as SVG. Needs Python's standard library only."""
import json
import math
import os
import signal
import subprocess
import time

COLOURS = ['#c0392b', '#2c3e50', '#2980b9', '#27ae60', '#8e44ad', '#d35400', '#16a085']


class Run:
    """One run of a script: its folder, the time that is left, and what could not be measured."""

    def __init__(self, folder, minutes):
        self.folder = folder
        self.deadline = time.time() + minutes * 60
        self.problems = []
        os.makedirs(folder, exist_ok=True)

    def left(self):
        return self.deadline - time.time()

    def result_of(self, name, command, file, seconds=math.inf):
        """Runs a command that writes JSON to `file` of the folder, and returns what it wrote; None and a line in `problems` if it failed or
        no time was left. seconds: the most that it may take."""
        path = f'{self.folder}/{file}'
        if self.left() <= 0:
            self.problems.append(f'{name}: no time left')
            return None
        if os.path.exists(path):
            os.remove(path)
        # In a session of its own, so that its processes end with it.
        try:
            program = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
        except OSError as error:
            self.problems.append(f'{name}: {error}')
            return None
        try:
            output, errors = program.communicate(timeout=min(self.left(), seconds))
        except subprocess.TimeoutExpired:
            os.killpg(program.pid, signal.SIGKILL)
            program.communicate()
            self.problems.append(f'{name}: no time left')
            return load(path)  # what it wrote as it went
        if program.returncode != 0:
            self.problems.append(f'{name}: exit code {program.returncode}: {(errors or output).strip()[-400:]}')
        elif output.strip():
            print(output.strip(), flush=True)
        return load(path)


def load(path):
    """None where there is no such file, or a part of it."""
    try:
        with open(path) as file:
            return json.load(file)
    except (OSError, ValueError):
        return None


def save(path, content):
    """Text as it is, anything else as JSON. Whoever reads meanwhile sees the old file or the new one."""
    with open(path + '.part', 'w') as file:
        file.write(content if isinstance(content, str) else json.dumps(content, indent=1))
    os.replace(path + '.part', path)


def names(parser, known):
    """The type of an option that takes some of the known names, with commas between."""
    return lambda text: [name for name in text.split(',') if name in known or parser.error(f'no {name}; there are {", ".join(known)}')]


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values)) if values else None


def least(values):
    """Of those that there are; None if there are none."""
    return min((value for value in values if value), default=None)


def number(value, digits=1):
    return '-' if value is None else f'{value:.{digits}f}'


def table(head, rows):
    """Markdown; cells are text or numbers."""
    lines = [head, ['---'] * len(head), *rows]
    return '\n'.join('| ' + ' | '.join(map(str, line)) + ' |' for line in lines) + '\n'


class Picture:
    """An SVG drawing with room for a title, labels on the axes and names at the right."""

    def __init__(self, title, width=680, height=380, right=160, bottom=45):
        self.width, self.height, self.left, self.top, self.right, self.bottom = width, height, 60, 30, right, bottom
        self.parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">',
                      f'<rect width="{width}" height="{height}" fill="white"/>', f'<text x="{self.left}" y="18">{title}</text>']
        self.named = 0

    def x(self, share):
        return self.left + (self.width - self.left - self.right) * share

    def y(self, share):
        return self.height - self.bottom - (self.height - self.top - self.bottom) * share

    def column_label(self, share, text, line=False):
        if line:
            self.parts.append(f'<line x1="{self.x(share):.1f}" y1="{self.y(1)}" x2="{self.x(share):.1f}" y2="{self.y(0)}" stroke="#ddd"/>')
        for place, part in enumerate(text.split('\n')):
            self.parts.append(f'<text x="{self.x(share):.1f}" y="{self.y(0) + 16 + 13 * place}" text-anchor="middle">{part}</text>')

    def row_label(self, share, text, strong=False):
        self.parts.append(f'<line x1="{self.x(0)}" y1="{self.y(share):.1f}" x2="{self.x(1)}" y2="{self.y(share):.1f}" stroke="{"#888" if strong else "#ddd"}"/>'
                          f'<text x="{self.x(0) - 6}" y="{self.y(share) + 4:.1f}" text-anchor="end">{text}</text>')

    def curve(self, name, colour, points, dashed=False):
        path = ' '.join(f'{self.x(x):.1f},{self.y(y):.1f}' for x, y in points)
        dash = ' stroke-dasharray="4 3"' if dashed else ''
        self.parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>')
        self.name(name, colour)

    def bar(self, begin, end, share, colour, text):
        self.parts.append(f'<rect x="{self.x(begin):.1f}" y="{self.y(share):.1f}" width="{self.x(end) - self.x(begin):.1f}" '
                          f'height="{self.y(0) - self.y(share):.1f}" fill="{colour}"/>'
                          f'<text x="{self.x((begin + end) / 2):.1f}" y="{self.y(share) - 3:.1f}" text-anchor="middle" font-size="9">{text}</text>')

    def name(self, text, colour):
        self.parts.append(f'<text x="{self.x(1) + 8}" y="{self.top + 16 + 18 * self.named}" fill="{colour}">{text}</text>')
        self.named += 1

    def text(self):
        return '\n'.join(self.parts) + '\n</svg>\n'


def position(value, low, high):
    """Of a logarithmic axis, in [0, 1]."""
    return math.log(max(value, low) / low) / max(math.log(high / low), 1e-9)


def time_curves(title, curves, column_text, dashed=()):
    """Times against sizes, both logarithmic: {name: {size: us}}; the first one is ours."""
    sizes = sorted(next(iter(curves.values())))
    low, high = 1.0, max(max(times.values()) for times in curves.values()) * 1.3
    picture = Picture(title)
    for size in sizes:
        picture.column_label(position(size, sizes[0], sizes[-1]), column_text(size), line=True)
    for power in range(int(math.log10(high)) + 1):
        picture.row_label(position(10 ** power, low, high), str(10 ** power))
    colours = iter(COLOURS)
    for name, times in curves.items():
        colour = '#888' if name in dashed else next(colours)
        picture.curve(name, colour, [(position(size, sizes[0], sizes[-1]), position(time, low, high)) for size, time in sorted(times.items())], name in dashed)
    return picture.text()


def ratio_range(ratios):
    return min(0.8, *ratios), max(1.6, *ratios)


def ratio_curves(title, curves, column_text=str):
    """Ratios against sizes, which are logarithmic: {name: {size: ratio}}."""
    sizes = sorted({size for curve in curves.values() for size in curve})
    low, high = ratio_range([ratio for curve in curves.values() for ratio in curve.values()])
    picture = Picture(title)
    for size in sizes:
        picture.column_label(position(size, sizes[0], sizes[-1]), column_text(size))
    for fifth in range(math.ceil(low * 5), math.floor(high * 5) + 1):
        picture.row_label((fifth / 5 - low) / (high - low), f'{fifth / 5:.1f}', strong=fifth == 5)
    for colour, (name, curve) in zip(COLOURS, curves.items()):
        picture.curve(name, colour, [(position(size, sizes[0], sizes[-1]), (ratio - low) / (high - low)) for size, ratio in sorted(curve.items())])
    return picture.text()


def ratio_bars(title, groups):
    """Ratios side by side: {group: {name: ratio}}."""
    series = list(dict.fromkeys(name for bars in groups.values() for name in bars))
    high = max(1.2, *(ratio for bars in groups.values() for ratio in bars.values())) * 1.05
    picture = Picture(title, width=max(680, 220 + 90 * len(groups)), bottom=60)
    step = 1 if high > 4 else 0.5
    for tick in range(int(high / step) + 1):
        picture.row_label(tick * step / high, f'{tick * step:.1f}')
    picture.row_label(1 / high, '1.0', strong=True)
    for place, (group, bars) in enumerate(groups.items()):
        picture.column_label((place + 0.5) / len(groups), group)
        room = 0.85 / len(groups)
        for index, name in enumerate(series):
            if name in bars:
                begin = (place + 0.075) / len(groups) + room * index / len(series)
                picture.bar(begin, begin + room / len(series), bars[name] / high, COLOURS[index], f'{bars[name]:.2f}')
    for colour, name in zip(COLOURS, series):
        picture.name(name, colour)
    return picture.text()
