#!/usr/bin/env python3
"""Checks that includes and calls point only to lower layers.

    tools/layers.py ROOT OBJS...    fails if one of them points up
    tools/layers.py --self-test     verifies that violations are detected

The first fenced block of docs/architecture.md defines the order of the folders
of src/: a row for each layer, the highest first.  Folders in the same row must
not depend on each other.  Calls are read from the object files, after macro
expansion and inlining.
"""

import pathlib
import re
import subprocess
import sys
import tempfile

# Test code sits at both ends: what the table calls to be made to fail is below
# everything, and the directives that drive it are above everything.
TOP = {"test/ngx_mcp_late", "test/ngx_mcp_probe",
       "test/ngx_mcp_redis_probe", "test/ngx_mcp_stub"}

# The descriptor by which nginx finds a module's configuration and contexts is
# the name of the module, not something that is called.
MODULE = "ngx_http_mcp_tasks_module"

# What is in the zone is the affair of stores and of what lies below them.
HIDDEN = "table"
MAY_SEE = {"table/ngx_mcp_stats_types.h", "table/ngx_mcp_stats.c"}
STORE = "store"


class Layers:

    def __init__(self, root):
        self.root = pathlib.Path(root)
        self.src = self.root / "src"
        self.rank = {}

        text = (self.root / "docs/architecture.md").read_text()
        block = re.search(r"^```\n(.*?)^```", text, re.M | re.S)

        if block is None:
            sys.exit("docs/architecture.md has no table of folders")

        for i, row in enumerate(block.group(1).splitlines()):
            for folder in re.findall(r"(?:^|\s)src/([\w/]*)", row):
                self.rank[folder.rstrip("/")] = i

        self.store = self.rank.get(STORE, 0)

    def folder(self, part):
        """The folder of a path below src/, as the order counts it."""

        if str(part.with_suffix("")) in TOP:
            return ""

        return "" if str(part.parent) == "." else str(part.parent)

    def files(self):
        return sorted(p.relative_to(self.src)
                      for p in self.src.rglob("*.[ch]"))

    def unknown(self):
        for folder in sorted({self.folder(p) for p in self.files()}):
            if folder not in self.rank:
                yield f"src/{folder} is not in docs/architecture.md"

        for folder in self.rank:
            if not (self.src / folder).is_dir():
                yield f"docs/architecture.md has src/{folder}, which is not"

    def wrong(self, user, used):
        """Why one file must not know another, or None."""

        a, b = self.folder(user), self.folder(used)

        if a == b or a not in self.rank or b not in self.rank:
            return None

        if self.rank[a] > self.rank[b]:
            return "points up"

        if self.rank[a] == self.rank[b]:
            return "points aside"

        if b == HIDDEN and self.rank[a] < self.store and a != "" \
                and not a.startswith(STORE + "/") \
                and str(used) not in MAY_SEE:
            return "is for stores only"

        return None

    def includes(self):
        where = {p.name: p for p in self.files() if p.suffix == ".h"}

        for user in self.files():
            text = (self.src / user).read_text()

            for name in re.findall(r'^#include "(\w+\.h)"', text, re.M):
                if name in where:
                    yield user, where[name], "includes it"

    def calls(self, objects):
        """References between object files, from the symbols in them."""

        where = {p.stem: p for p in self.files() if p.suffix == ".c"}
        defined, needed = {}, []

        for path in sorted(pathlib.Path(objects, "addon").glob("*/*.o")):
            source = where.get(path.stem)

            if source is None:
                continue

            out = subprocess.run(["nm", path], check=True, text=True,
                                 capture_output=True).stdout

            for line in out.splitlines():
                *_, kind, name = line.split()

                if kind == "U":
                    needed.append((source, name))
                elif kind.isupper():
                    defined[name] = source

        missing = [p for p in where.values() if p not in defined.values()
                   and "test/" not in str(p)]

        if missing:
            sys.exit(f"no symbols of {missing[0]} in {objects}")

        for source, name in needed:
            if name in defined and name != MODULE:
                yield source, defined[name], name

    def complaints(self, objects):
        yield from self.unknown()

        arrows = list(self.includes())

        for directory in objects:
            arrows += self.calls(directory)

        for user, used, what in sorted(set(arrows)):
            why = self.wrong(user, used)

            if why:
                yield f"src/{user} -> src/{used} {why}: {what}"


def self_test():
    """Each kind of wrong arrow, in a tree that is made for it."""

    good = {
        "docs/architecture.md": "```\nsrc/\nsrc/one/ src/two/\nsrc/store/\n"
                                "src/table/\n```\n",
        "src/ngx_mcp_top.c": '#include "ngx_mcp_a.h"\n'
                             "int ngx_mcp_a(void);\n"
                             "int ngx_mcp_top(void)"
                             " { return ngx_mcp_a(); }\n",
        "src/one/ngx_mcp_a.h": "",
        "src/one/ngx_mcp_a.c": "int ngx_mcp_a(void) { return 1; }\n",
        "src/two/ngx_mcp_b.h": "",
        "src/two/ngx_mcp_b.c": "int ngx_mcp_b(void) { return 2; }\n",
        "src/store/ngx_mcp_s.c": '#include "ngx_mcp_t.h"\n'
                                 "int ngx_mcp_s(void) { return 3; }\n",
        "src/table/ngx_mcp_t.h": "",
        "src/table/ngx_mcp_t.c": "int ngx_mcp_t(void) { return 4; }\n",
    }

    bad = {
        "an include that points up": (
            {"src/table/ngx_mcp_t.h": '#include "ngx_mcp_a.h"\n'},
            "src/table/ngx_mcp_t.h -> src/one/ngx_mcp_a.h points up"),
        "a call that points up": (
            {"src/table/ngx_mcp_t.c": "int ngx_mcp_top(void);\n"
             "int ngx_mcp_t(void) { return ngx_mcp_top(); }\n"},
            "src/table/ngx_mcp_t.c -> src/ngx_mcp_top.c points up"),
        "an include from one folder of a row to another": (
            {"src/two/ngx_mcp_b.h": '#include "ngx_mcp_a.h"\n'},
            "src/two/ngx_mcp_b.h -> src/one/ngx_mcp_a.h points aside"),
        "a surface that sees the table": (
            {"src/one/ngx_mcp_a.h": '#include "ngx_mcp_t.h"\n'},
            "src/one/ngx_mcp_a.h -> src/table/ngx_mcp_t.h is for stores"),
        "a folder that nobody has put into the order": (
            {"src/new/ngx_mcp_n.c": "int ngx_mcp_n(void) { return 5; }\n"},
            "src/new is not in docs/architecture.md"),
    }

    def check(changes):
        with tempfile.TemporaryDirectory() as top:
            root = pathlib.Path(top)
            tree = {**good, **changes}

            for name, text in tree.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)

            includes = {f"-I{(root / name).parent}" for name in tree}

            for path in (root / "src").rglob("*.c"):
                out = root / "objs/addon" / path.parent.name
                out.mkdir(parents=True, exist_ok=True)
                subprocess.run(["gcc", *includes, "-c", path,
                                "-o", out / (path.stem + ".o")], check=True)

            return list(Layers(root).complaints([root / "objs"]))

    found = check({})

    if found:
        sys.exit(f"complains about a tree in order: {found[0]}")

    for name, (changes, expected) in bad.items():
        found = check(changes)

        if not any(line.startswith(expected) for line in found):
            sys.exit(f"does not see {name}: {found}")

    print(f"layers: all {len(bad)} invalid dependencies were detected")


def main():
    if sys.argv[1:] == ["--self-test"]:
        self_test()
        return

    if len(sys.argv) < 3:
        sys.exit(__doc__)

    found = list(Layers(sys.argv[1]).complaints(sys.argv[2:]))

    for line in found:
        print(line)

    sys.exit(1 if found else 0)


main()
