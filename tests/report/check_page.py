# SPDX-License-Identifier: Apache-2.0
"""Opens the pages of tare report and holds what they show against the data that they hold.

usage: check_page.py FOLDER    with page.html, hostile.html and alone.html (test_page.sh)
"""
import json
import pathlib
import re
import sys

from browser import Browser

CTRL, SHIFT = 2, 8
MOST_OPEN_MS = 2000  # for ten thousand nodes

DATA = re.compile(r'(<script type="application/json" id="data">)(.*?)(</script>)', re.S)

# The least contrast of the text in sight with what it stands on, as WCAG defines it, and where it is.
CONTRAST = """(() => {
  const canvas = new OffscreenCanvas(1, 1).getContext('2d', {willReadFrequently: true});
  const parse = (colour) => {
    canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
  };
  const over = (top, under) => [0, 1, 2].map((i) => top[i] * top[3] + under[i] * (1 - top[3])).concat(1);
  const luminance = (c) => [0.2126, 0.7152, 0.0722].reduce((sum, weight, i) => {
    const x = c[i] / 255;
    return sum + weight * (x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4);
  }, 0);
  const ground = (element) => {
    if (!element) return parse(getComputedStyle(document.body).backgroundColor);
    const style = getComputedStyle(element);
    const own = parse(element.ownerSVGElement ? 'transparent' : style.backgroundColor);
    return own[3] === 1 ? own : over(own, ground(element.parentElement));
  };
  const groundOf = (element) => {
    const box = element.closest('.node')?.querySelector('.box');
    return box ? parse(getComputedStyle(box).fill) : ground(element);
  };
  let least = {ratio: 99};
  for (const element of document.querySelectorAll('body *')) {
    const hasText = [...element.childNodes].some((n) => n.nodeType === 3 && n.data.trim() !== '');
    const style = getComputedStyle(element);
    if (!hasText || element.getClientRects().length === 0 || element.closest('.skip, script, title, button:disabled')) continue;
    const under = groundOf(element);
    const text = over(parse(element.ownerSVGElement ? style.fill : style.color), under);
    const [a, b] = [luminance(text), luminance(under)].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < least.ratio) least = {ratio, where: element.tagName + '.' + element.getAttribute('class') + ': ' + element.textContent.slice(0, 40)};
  }
  return least;
})()"""


def data_of(path):
    return json.loads(DATA.search(pathlib.Path(path).read_text(encoding="utf-8"))[2])


def check(is_true, *what):
    if not is_true:
        raise AssertionError(" ".join(map(str, what)))


def same(found, expected, what):
    check(found == expected, what, "found", found, "expected", expected)


class Table:
    """A table of the page by its name."""

    def __init__(self, page, name):
        self.page, self.root = page, f"document.querySelector('[data-table={json.dumps(name)}]')"

    def column(self, index):
        return self.page.run(f"[...{self.root}.querySelectorAll('tbody tr')].map((r) => r.children[{index}].innerText.trim())")

    def rows(self):
        return self.page.run(f"{self.root}.querySelectorAll('tbody tr').length")

    def count(self):
        return self.page.run(f"{self.root}.querySelector('.count').textContent")

    def sort(self, index):
        """By keyboard: the head's button has the focus."""
        self.page.run(f"{self.root}.querySelectorAll('th button')[{index}].focus()")
        self.page.key("Enter", "\r")
        return self.page.run(f"{self.root}.querySelectorAll('th')[{index}].getAttribute('aria-sort')")

    def filter(self, text):
        self.page.run(f"(() => {{ const f = {self.root}.querySelector('input'); f.value = ''; f.focus(); }})()")
        self.page.run(f"{self.root}.querySelector('input').dispatchEvent(new Event('input'))")
        if text:
            self.page.type(text)


def decibels(x):
    return "\u2013" if x is None else f"{x:.1f}"


# --- what is shown ---


def check_verdict(page, data):
    figure = lambda name: page.run(f"document.querySelector('[data-tile={name}] .figure').textContent")
    models = data["models"]
    same(figure("accuracy"), f"{data['verdict']['sqnr_db']:.1f} dB", "accuracy")
    same(figure("size"), f"{models['float']['weight_bytes'] / models['quantized']['weight_bytes']:.2f}\u00d7 smaller", "size")
    ratio = data["bench"]["speed_ratio"]
    same(figure("speed"), f"{ratio:.2f}\u00d7 faster" if ratio >= 1 else f"{1 / ratio:.2f}\u00d7 slower", "speed")
    same(figure("coverage"), f"{100 * data['coverage']['quantized_macs'] / data['coverage']['macs']:.1f} %", "coverage")
    same(page.run("[...document.querySelectorAll('#advice > li > p')].map((p) => p.textContent)"), [a["text"] for a in data["advice"]], "advice")
    for name, level in data["levels"].items():
        same(page.run(f"document.querySelector('[data-tile={name}] .badge').textContent"), level, name)


def check_tables(page, data):
    layers, table = data["analyze"]["layers"], Table(page, "layers")
    alone = sorted((x["alone_db"] for x in layers if x["alone_db"] is not None))
    same(table.column(2), [decibels(x) for x in alone + [None] * (len(layers) - len(alone))], "layers, the worst first")
    same(table.sort(2), "descending", "layers again")
    same(table.column(2)[: len(alone)], [decibels(x) for x in reversed(alone)], "layers, the best first")
    same(table.sort(0), "ascending", "layers by name")
    same(sorted(table.column(0)), sorted(x["float_node"] for x in layers), "names of layers")
    table.filter("linear")
    wanted = [x["float_node"] for x in layers if "linear" in x["operator"].lower()]
    same(sorted(table.column(0)), sorted(wanted), "layers that hold 'linear'")
    same(table.count(), f"{len(wanted)} of {len(layers)} rows", "their number")
    table.filter("")
    same(table.rows(), len(layers), "rows without a filter")

    steps = data["bench"]["layers"]
    same(Table(page, "time").column(0), [s["node"] or "(result)" for s in sorted(steps, key=lambda s: -s["median_ms"])], "steps by time")
    operators = Table(page, "operators")
    same(operators.column(4), [o["reason"] for o in data["explain"]["operators"]], "reasons")
    same(Table(page, "edges").rows(), len(data["explain"]["edges"]), "edges")


def check_decisions(page, data):
    table, decisions = Table(page, "decisions"), data["explain"]["decisions"]
    same(table.column(1), [d["node"] for d in decisions], "decisions")
    table.filter("conv2")
    wanted = [d["node"] for d in decisions if any("conv2" in str(v).lower() for v in d.values())]
    check(0 < len(wanted) < len(decisions), "a search that tells nothing apart")
    same(table.column(1), wanted, "decisions that name conv2")
    table.filter("")
    page.run(f"(() => {{ const s = {table.root}.querySelectorAll('select')[1]; s.value = 'lowered'; s.dispatchEvent(new Event('change')); }})()")
    same(table.rows(), sum(d["decision"] == "lowered" for d in decisions), "decisions of one kind")


def check_charts(page, data):
    tensors = data["analyze"]["tensors"]
    first = min(tensors, key=lambda t: t["sqnr_db"] if t["sqnr_db"] is not None else float("inf"))
    same(page.run("document.querySelector('[data-tensor]').dataset.tensor"), first["node"], "the worst tensor")
    page.run("document.querySelector('#tensors-body > .more').click()")
    same(page.run("document.querySelectorAll('#tensors [data-tensor]').length"), len(tensors), "histograms")
    ranged = sum("low" in t for t in tensors)
    same(page.run("document.querySelectorAll('#tensors .range').length"), ranged, "chosen ranges")
    bars = sum(n > 0 for t in tensors for n in t["histogram"])
    same(page.run("document.querySelectorAll('#tensors .bin').length"), bars, "bars of histograms")
    bench = data["bench"]
    dots = [s for s in bench["layers"] + bench["against_layers"] if s["macs"] > 0 and s["median_ms"] > 0]
    same(page.run("document.querySelectorAll('#roofline .dot').length"), len(dots), "layers under the roofs")
    places = bench["memory"]["places"] + bench["against_memory"]["places"]
    same(page.run("document.querySelectorAll('#memory .place').length"), sum(not p["is_tail"] for p in places), "places in memory")


# --- the graph ---

CHOSEN = "document.querySelector('#node [data-chosen]')?.dataset.chosen"
SCALE = "Number(document.getElementById('graph-view').dataset.scale)"


def middle_of(page, node):
    return page.run(f"(() => {{ const r = document.querySelector('[data-node={json.dumps(node)}]').getBoundingClientRect();"
                    "return [r.x + r.width / 2, r.y + r.height / 2]; })()")


def check_choice(page, data, name):
    """The panel says of a node what the data says."""
    same(page.run(CHOSEN), name, "the chosen node")
    node = next(n for n in data["graph"]["nodes"] if n["name"] == name)
    error = next((x for x in data["compare"]["layers"] if x["quantized_node"] == name), None)
    text = page.run("document.getElementById('node').innerText")
    check(node["operator"] in text, "the operator of", name)
    check(error is None or error["sqnr_db"] is None or f"{error['sqnr_db']:.1f} dB" in text, "the error of", name, "in", text)
    known = {name, *node["operators"]}
    decisions = [d for d in data["explain"]["decisions"] if d["node"] in known]
    same(page.run("document.querySelectorAll('#node ol > li').length"), len(decisions), f"decisions about {name}")


def check_graph(page, data):
    page.run("document.getElementById('graph').scrollIntoView()")
    page.frame()
    shown = [n for n in data["graph"]["nodes"] if not n.get("constant")]
    page.run("document.querySelector('[aria-label=\"Fit the whole graph\"]').click()")
    page.frame()
    same(sorted(page.run("[...document.querySelectorAll('.node')].map((n) => n.dataset.node)")), sorted(n["name"] for n in shown), "nodes")
    names = [n["name"] for n in data["graph"]["nodes"]]
    reader = next(n for n in shown if n["name"] == "pool")

    page.click(*middle_of(page, "pool"))
    check_choice(page, data, "pool")
    page.key("ArrowUp")
    check_choice(page, data, names[reader["inputs"][0]])
    page.key("ArrowDown")
    check_choice(page, data, "pool")
    page.key("Escape")
    same(page.run(CHOSEN), None, "after escape the chosen node")

    before = page.run(SCALE)
    page.key("+", "+")
    check(page.run(SCALE) > before, "plus does not zoom")
    page.key("-", "-")
    page.key("-", "-")
    check(page.run(SCALE) < before, "minus does not zoom")
    page.key("0", "0")
    check(abs(page.run(SCALE) - before) < 1e-3, "0 does not fit the graph")
    x, y = middle_of(page, "pool")
    page.mouse("mouseWheel", x, y, deltaX=0, deltaY=-120, modifiers=CTRL)
    page.frame()
    check(page.run(SCALE) > before, "ctrl and the wheel do not zoom")
    moved_from = middle_of(page, "pool")
    page.mouse("mousePressed", x, y, button="left", clickCount=1)
    page.mouse("mouseMoved", x + 60, y + 30, button="left")
    page.mouse("mouseReleased", x + 60, y + 30, button="left", clickCount=1)
    page.frame()
    moved_to = middle_of(page, "pool")
    check(abs(moved_to[0] - moved_from[0] - 60) < 2 and abs(moved_to[1] - moved_from[1] - 30) < 2, "the graph is not dragged", moved_from, moved_to)
    same(page.run(CHOSEN), None, "after dragging the chosen node")

    page.run("document.getElementById('graph-search').focus()")
    page.type("add")
    wanted = [n["name"] for n in shown if "add" in (n["name"] + " " + n["operator"] + " " + " ".join(n["operators"])).lower()]
    same(page.run("document.getElementById('graph-found').textContent"), f"{len(wanted)} node{'' if len(wanted) == 1 else 's'}", "nodes found")
    page.key("Enter", "\r")
    check_choice(page, data, wanted[0])

    worst = min((x for x in data["compare"]["layers"] if x["sqnr_db"] is not None), key=lambda x: x["sqnr_db"])
    page.run("document.getElementById('graph-worst').click()")
    check_choice(page, data, worst["quantized_node"])
    # From a table to the node.
    page.run("document.querySelector('[data-table=time] tbody button.link').click()")
    slowest = max(data["bench"]["layers"], key=lambda s: s["median_ms"])
    check_choice(page, data, slowest["node"])


# --- the page as a whole ---


def check_looks(browser, path):
    for theme in ("light", "dark"):
        page = browser.open(path, theme=theme)
        least = page.run(CONTRAST)
        check(least["ratio"] >= 4.5, theme, "contrast", least)
        same(page.complaints, [], "complaints")
    grounds = []
    for expected in ("light", "dark"):
        page.run("document.getElementById('theme').click()")
        same(page.run("document.documentElement.dataset.theme"), expected, "theme")
        grounds.append(page.run("getComputedStyle(document.body).backgroundColor"))
    check(grounds[0] != grounds[1], "themes look alike")
    page.size(360, 800, True)
    page.frame()
    same(page.run("document.documentElement.scrollWidth"), 360, "width on a phone")
    check(page.run("document.querySelector('#tiles').getBoundingClientRect().bottom") < 800, "the verdict is not in sight on a phone")
    page.run("document.getElementById('decisions').scrollIntoView()")
    page.frame()
    left, right = page.run("(({left, right}) => [left, right])(document.querySelector('#sections [aria-current]').getBoundingClientRect())")
    check(0 <= left and right <= 360, "the link of the section in sight is not in sight on a phone:", left, right)


def check_hostile(browser, path):
    page = browser.open(path)
    same(page.complaints, [], "complaints about hostile names")
    same(page.run("document.images.length + document.querySelectorAll('b').length"), 0, "elements that a name made")
    check("hostile<b>.safetensors" in page.run("document.getElementById('title').textContent"), "the title")
    data = data_of(path)
    hostile = [d["reason"] for d in data["explain"]["decisions"] if "<img" in d["reason"]]
    check(any("\u202e" in reason for reason in hostile), "there is nothing hostile in the data")
    hostile = [reason.replace("\u202e", "\\u202e") for reason in hostile]  # what is not seen is shown
    same([r for r in Table(page, "decisions").column(4) if "<img" in r], hostile, "hostile reasons as text")


def check_alone(browser, path):
    """A page without an analysis tells what the two models alone say: layers by their values, and ranges."""
    data = data_of(path)
    check("analyze" not in data and len(data["tensors"]) > 0, "there is an analysis, or there are no ranges")
    page = browser.open(path)
    layers = Table(page, "layers")
    same(layers.rows(), len(data["compare"]["layers"]), "layers that were compared")
    page.run("document.querySelector('#tensors-body > .more')?.click()")
    same(page.run("document.querySelectorAll('#tensors [data-tensor]').length"), len(data["tensors"]), "histograms")
    bars = sum(n > 0 for t in data["tensors"] for n in t["histogram"])
    same(page.run("document.querySelectorAll('#tensors .bin').length"), bars, "bars of histograms")
    shown = [n["name"] for n in data["graph"]["nodes"] if not n.get("constant")]
    page.run("document.querySelector('[aria-label=\"Fit the whole graph\"]').click()")
    page.frame()
    same(sorted(page.run("[...document.querySelectorAll('.node')].map((n) => n.dataset.node)")), sorted(shown), "nodes")
    same(page.complaints, [], "complaints about a page without an analysis")


def large(data, count):
    """The data of a network of so many nodes: branches that part and join, each fourth node with a second input."""
    nodes, layers, decisions = [], [], []
    for i in range(count):
        name = f"layer_{i}"
        inputs = [] if i == 0 else [i - 1] if i % 4 else [i - 1, max(0, i - 7)]
        nodes.append({"name": name, "operator": "torch.ao.nn.quantized.Conv2d", "kind": "float" if i % 50 == 7 else "integers", "operators": [name],
                      "inputs": inputs, "island": 0})
        layers.append({"quantized_node": name, "float_node": name, "sqnr_db": 50 - i % 45, "max_abs_error": 0.1})
        decisions.append({"pass": "lower", "node": name, "subject": "torch.nn.Conv2d", "decision": "lowered", "rule": "", "reason": "computed in integers"})
    result = {k: v for k, v in data.items() if k not in ("analyze", "bench")}
    operators = [{"name": n["name"], "subject": "torch.nn.Conv2d", "outcome": "quantized", "reason": "computed in integers", "macs": 9} for n in nodes]
    result["graph"] = {"nodes": nodes}
    result["compare"] = {**data["compare"], "layers": layers}
    result["explain"] = {"operators": operators, "decisions": decisions, "nodes": [], "edges": []}
    return result


def check_large(browser, path, folder):
    text = pathlib.Path(path).read_text(encoding="utf-8")
    file = pathlib.Path(folder, "large.html")
    data = json.dumps(large(data_of(path), 10000))
    file.write_text(DATA.sub(lambda found: found[1] + data + found[3], text), encoding="utf-8")
    times = []
    while len(times) < 3 and (not times or min(times) > MOST_OPEN_MS):  # a machine may be busy
        page = browser.open(file)
        times.append(page.open_ms)
    print(f"10000 nodes: {', '.join(f'{ms:.0f} ms' for ms in times)}")
    check(min(times) <= MOST_OPEN_MS, "10000 nodes open in", min(times), "ms")
    same(page.complaints, [], "complaints about 10000 nodes")
    same(page.run("document.getElementById('graph-view').dataset.layout"), "layers", "layout without graphviz")
    # No two nodes lie on each other, in a layout of our own.
    drawn = page.run("[...document.querySelectorAll('.node')].map((n) => n.transform.baseVal[0].matrix).map((m) => [m.e, m.f])")
    check(len(drawn) > 3, "nothing is drawn")
    for i, (x, y) in enumerate(drawn):
        check(all(abs(x - a) >= 166 or abs(y - b) >= 45 for a, b in drawn[:i]), "nodes overlap")
    page.run("document.querySelector('[aria-label=\"Fit the whole graph\"]').click()")
    page.frame()
    same(page.run("document.getElementById('graph-view').dataset.drawn"), "10000", "nodes in sight from afar")
    check(page.run("document.querySelectorAll('#graph-view svg *').length") < 100, "nodes from afar are drawn one by one")
    page.run("document.getElementById('graph-search').focus()")
    page.type("layer_9876")
    page.key("Enter", "\r")
    same(page.run(CHOSEN), "layer_9876", "the node found among 10000")
    table = Table(page, "decisions")
    same(table.rows(), 100, "rows drawn at first")
    table.filter("layer_9876")
    same(table.column(1), ["layer_9876"], "the decision found among 10000")


def main(folder):
    path = pathlib.Path(folder, "page.html")
    data = data_of(path)
    with Browser() as browser:
        page = browser.open(path)
        check_verdict(page, data)
        check_tables(page, data)
        check_decisions(page, data)
        check_charts(page, data)
        check_graph(page, data)
        check(page.print_size() > 10000, "nothing is printed")
        same(page.complaints, [], "complaints")
        check_looks(browser, path)
        check_hostile(browser, pathlib.Path(folder, "hostile.html"))
        check_alone(browser, pathlib.Path(folder, "alone.html"))
        check_large(browser, path, folder)


if __name__ == "__main__":
    main(sys.argv[1])
