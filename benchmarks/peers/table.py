"""What the commands that measure beside other engines share: running Inlay, alternating, and tables in documents."""
import datetime
import json
import os
import platform
import re
import statistics
import subprocess
import sys
from dataclasses import dataclass

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
RELEASE = os.path.join(ROOT, "build", "release")
INLAY = os.path.join(RELEASE, "examples", "inlay")


def run(command, environment=None):
    """The command's stdout as text; when it fails, the end of what it said."""
    command = [str(part) for part in command]
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              env={**os.environ, **(environment or {})}, check=False)
    except OSError as error:
        sys.exit(f"{command[0]}: {error.strerror}")
    if done.returncode:
        sys.exit(f"failed: {' '.join(command)}\n{done.stderr.decode(errors='replace')[-2000:]}")
    return done.stdout.decode(errors="replace")


def inlay_bench(model, *options):
    """What `inlay bench` measured, once."""
    if not os.path.exists(INLAY):
        sys.exit("Inlay's release build is not there: cmake --preset release; cmake --build --preset release")
    return json.loads(run([INLAY, "bench", model, "--reps", 1, "--json", *options]))


def peers_folder(command):
    folder = os.environ.get("PEERS_DIR") or sys.exit(f"name the peers' folder: PEERS_DIR=... {command}")
    return os.path.abspath(folder)


def model_file(peers, name):
    path = os.path.join(peers, "models", name)
    return path if os.path.exists(path) else sys.exit(f"no model {path}: scripts/bootstrap model gemma, and copy them")


def alternately(rounds, *measures):
    """Each measure once a round, in turn; per measure the list of its figures."""
    figures = [[] for _ in measures]
    for _ in range(rounds):
        for measure, found in zip(measures, figures):
            found.append(measure())
    return figures


def spread(figures):
    """Median (least-most), with decimals only for small numbers."""
    def text(value):
        return f"{value:.0f}" if value >= 20 else f"{value:.1f}"
    return f"{text(statistics.median(figures))} ({text(min(figures))}-{text(max(figures))})"


@dataclass
class Row:
    """One thing measured: `measures`, one for each column and Inlay's last, give figures of `unit`."""
    name: str
    measures: list
    smaller_is_better: bool = False
    remark: object = None  # says in a column of its own what the median of Inlay's figures means

    def measured(self, rounds):
        *peers, inlay = alternately(rounds, *self.measures)
        medians = [statistics.median(figures) for figures in peers]
        best = min(medians) if self.smaller_is_better else max(medians)
        ratio = statistics.median(inlay) / best
        ratio = 1 / ratio if self.smaller_is_better else ratio
        cells = [self.name, *map(spread, (*peers, inlay)), f"{ratio:.2f}"]
        return cells + ([self.remark(statistics.median(inlay))] if self.remark else [])


def measure_table(title, peers, rows, rounds, remarks=()):
    """The lines of a table; each is printed when it is known."""
    columns = [title, *peers, "Inlay", "ratio", *remarks]
    lines = [f"| {' | '.join(columns)} |", "|" + " --- |" * len(columns)]
    print(*lines, sep="\n", flush=True)
    for row in rows:
        cells = row.measured(rounds)
        lines.append(f"| {' | '.join(cells + [''] * (len(columns) - len(cells)))} |")
        print(lines[-1], flush=True)
    return lines


def processor():
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as cpuinfo:
            for line in cpuinfo:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor()


def conditions(rounds):
    return (f"{datetime.date.today()}, {processor()}, {os.cpu_count()} processors, load before "
            f"{os.getloadavg()[0]:.1f}; median of {rounds} (least-most)")


def replace_in_benchmarks(marker, lines):
    """Puts the lines between <!-- marker --> and <!-- end --> of docs/benchmarks.md."""
    path = os.path.join(ROOT, "docs", "benchmarks.md")
    with open(path, encoding="utf-8") as document:
        text = document.read()
    block = "\n".join([f"<!-- {marker} -->", *lines, "<!-- end -->"])
    text, n = re.subn(rf"<!-- {marker} -->.*?<!-- end -->", lambda _: block, text, flags=re.DOTALL)
    if n != 1:
        sys.exit(f"docs/benchmarks.md has no place marked <!-- {marker} --> ... <!-- end -->")
    with open(path, "w", encoding="utf-8") as document:
        document.write(text)
