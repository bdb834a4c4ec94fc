"""Benchmark results as a table, as JSON, and as a plot.

bench/report.py RECORD PLOT DOCUMENT [RESULTS]

RECORD has the figures of all measures, each from the last run that was
recorded.  RESULTS, written by bench/performance.py, may be of a run with only
some of the measures: these replace those in RECORD.  Then draws the plot of
RECORD, and replaces the table in DOCUMENT.
"""

import json
import re
import sys

ROW = 22
LEFT = 400
LINE = 260              # from there to where all limits are drawn
RIGHT = 210

STYLE = """
    text { font: 13px sans-serif; fill: #24292f; }
    .unit { font-size: 12px; fill: #57606a; }
    .head { font-weight: bold; }
    .holds { fill: #2da44e; } .missed { fill: #cf222e; }
    .limit { stroke: #24292f; stroke-width: 1.5; }
    @media (prefers-color-scheme: dark) {
        text { fill: #e6edf3; } .unit { fill: #9198a1; }
        .limit { stroke: #e6edf3; }
        .holds { fill: #3fb950; } .missed { fill: #f85149; }
    }
"""


def number(value):
    if value >= 100:
        return "{:,.0f}".format(value)
    return "%.1f" % value if value >= 10 else "%.2f" % value


class Lines:
    def __init__(self):
        self.order = []         # the names of all measures
        self.measures = {}      # by name: lines, notes, and what run it was

    def begin(self, name):
        self.measure = self.measures[name] = {"lines": [], "notes": []}

    def end(self, *run):
        """describes the run in which all of this was measured"""

        for measure in self.measures.values():
            measure["run"] = list(run)

    @property
    def lines(self):
        return [line for measure in self.measures.values()
                for line in measure["lines"]]

    @property
    def notes(self):
        """those of the measures, then those of the runs"""

        notes = [note for measure in self.measures.values()
                 for note in measure["notes"]]
        runs = {}

        for name, measure in self.measures.items():
            runs.setdefault("; ".join(measure["run"]), []).append(name)

        return notes + [text if len(runs) == 1
                        else "%s: %s" % (", ".join(names), text)
                        for text, names in runs.items()]

    def add(self, what, beside, unit, ours, its, sense, limit):
        """without a reference, the limit applies to the figure itself"""

        ratio = ours / its if its else ours
        self.measure["lines"].append({
            "measure": what, "beside": beside, "unit": unit,
            "ours": ours, "its": its, "ratio": ratio,
            "sense": sense, "limit": limit,
            "holds": ratio >= limit if sense == ">=" else ratio <= limit})

    def rate(self, what, beside, ours, its, limit, cpu=None, p99=None):
        """requests per second, and the CPU time of each"""

        self.add(what, beside, "1/s", ours["rate"], its["rate"], ">=", limit)
        self.add(what + ": CPU", beside, "us", ours["cpu"], its["cpu"], "<=",
                 cpu or 1 / limit)
        if p99:
            self.add(what + ": p99", beside, "ms", ours["p99"] / 1000,
                     its["p99"] / 1000, "<=", p99)

    def note(self, text):
        self.measure["notes"].append(text)

    def missed(self):
        return [line for line in self.lines if not line["holds"]]

    def print(self):
        print("%-56s %9s %5s %9s  %-15s %6s %8s"
              % ("", "module", "", "reference", "", "ratio", "limit"))

        for line in self.lines:
            print("%-56s %9s %-5s %9s  %-15s %6s %2s %5s  %s"
                  % (line["measure"], number(line["ours"]), line["unit"],
                     number(line["its"]) if line["its"] else "",
                     line["beside"] or "",
                     "%.2f" % line["ratio"] if line["its"] else "",
                     line["sense"], "%.4g" % round(line["limit"], 2),
                     "met" if line["holds"] else "NOT MET"))

        print("\n" + "\n".join(self.notes))
        print("%d of %d limits are met"
              % (len(self.lines) - len(self.missed()), len(self.lines)))

    def save(self, path):
        with open(path, "w") as f:
            json.dump({"order": self.order, "measures": self.measures}, f,
                      indent=2)
            f.write("\n")

    def load(self, path):
        """adds what was saved there, in place of older figures"""

        with open(path) as f:
            saved = json.load(f)

        self.order = saved["order"]
        self.measures.update(saved["measures"])
        self.measures = {name: self.measures[name] for name in self.order
                         if name in self.measures}

    def document(self, path):
        """the table in the document, and the notes below it"""

        rows = ["| measure | module | reference | ratio | limit | |",
                "| --- | ---: | ---: | ---: | ---: | --- |"]

        for line in self.lines:
            unit = "" if line["unit"] == "share" else " " + line["unit"]
            beside = ("%s%s, %s" % (number(line["its"]), unit, line["beside"])
                      if line["its"] else "")
            rows.append("| %s | %s%s | %s | %s | %s %.4g | %s |" % (
                line["measure"], number(line["ours"]), unit, beside,
                "%.2f" % line["ratio"] if line["its"] else "",
                "at least" if line["sense"] == ">=" else "at most",
                round(line["limit"], 2),
                "met" if line["holds"] else "**not met**"))

        text = "\n".join(rows) + "\n\n" + "\n".join(
            "- " + note for note in self.notes) + "\n"

        with open(path) as f:
            before = f.read()
        after = re.sub(r"(?s)(<!-- figures -->\n).*?(<!-- end -->)",
                       lambda m: m.group(1) + text + m.group(2), before)
        with open(path, "w") as f:
            f.write(after)

    def plot(self, path):
        """bars whose length is the ratio divided by its limit"""

        out = []
        y = 4

        for sense, title in ((">=", "at least: the bar must reach the line"),
                             ("<=", "at most: the bar must not pass the line")):
            y += ROW
            out.append('<text class="head" x="8" y="%d">%s</text>'
                       % (y, title))
            y += 8
            top = y

            for line in self.lines:
                if line["sense"] == sense:
                    out += self.bar(line, y)
                    y += ROW

            out.append('<line class="limit" x1="%d" x2="%d" y1="%d" '
                       'y2="%d"/>' % (LEFT + LINE, LEFT + LINE, top, y))
            y += 12

        with open(path, "w") as f:
            f.write('<svg xmlns="http://www.w3.org/2000/svg" viewBox='
                    '"0 0 %d %d">\n<style>%s</style>\n%s\n</svg>\n'
                    % (LEFT + LINE + RIGHT, y, STYLE, "\n".join(out)))

    def bar(self, line, y):
        length = min(line["ratio"] / line["limit"], 1.25) * LINE
        name = line["measure"].replace("&", "&amp;").replace("<", "&lt;")
        value = ("%.2f" % line["ratio"] if line["its"]
                 else "%s %s" % (number(line["ours"]),
                                 line["unit"].replace("share", "")))
        return ['<text x="%d" y="%d" text-anchor="end">%s</text>'
                % (LEFT - 8, y + 15, name),
                '<rect class="%s" x="%d" y="%d" width="%.1f" height="%d"/>'
                % ("holds" if line["holds"] else "missed", LEFT, y + 4,
                   length, ROW - 8),
                '<text class="unit" x="%d" y="%d">%s (%s %.4g)</text>'
                % (LEFT + LINE * 1.25 + 8, y + 15, value,
                   "≥" if line["sense"] == ">=" else "≤",
                   round(line["limit"], 2))]


if __name__ == "__main__":
    if len(sys.argv) not in (4, 5):
        sys.exit(__doc__)
    RECORD, PLOT, DOCUMENT = sys.argv[1:4]
    recorded = Lines()
    recorded.load(RECORD)

    for results in sys.argv[4:]:
        recorded.load(results)
        recorded.save(RECORD)

    recorded.plot(PLOT)
    recorded.document(DOCUMENT)
