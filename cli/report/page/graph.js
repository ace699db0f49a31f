// The graph, and what is known of the node that was chosen in it.
const graph = (() => {
  const {el, svg} = dom;
  const {WIDTH, HEIGHT} = layout;
  // Steps of the fill, from well to bad; bounds are of the better side.
  const SCALES = {
    error: {
      label: 'error', value: facts.sqnr, bounds: [40, 30, 20, 10], isGreaterBetter: true, text: format.db,
      names: ['40 dB and more', '30 to 40 dB', '20 to 30 dB', '10 to 20 dB', 'below 10 dB'], none: 'nothing differs, or not compared',
    },
    time: {
      label: 'time', value: facts.share, bounds: [0.01, 0.05, 0.1, 0.2], isGreaterBetter: false, text: (x) => format.percent(x),
      names: ['below 1 % of a run', '1 to 5 %', '5 to 10 %', '10 to 20 %', '20 % and more'], none: 'no step of its own',
    },
  };
  const KINDS = {
    integers: 'integers', float: 'float', conversion: 'quantize, dequantize', data: 'input, output', observer: 'observer', plain: 'undecided',
  };
  let scale = SCALES.error, chosen = null, found = [], at = -1, view = null, drawing = null, near = new Set();

  function level(node) {
    const value = scale.value(node);
    if (!format.isNumber(value)) return 'none';
    const index = scale.bounds.findIndex((bound) => (scale.isGreaterBetter ? value >= bound : value < bound));
    return index < 0 ? scale.bounds.length : index;
  }

  function drawNode(node) {
    const value = scale.value(node);
    const names = ['node', chosen === node && 'chosen', found.includes(node) && 'found'].filter(Boolean).join(' ');
    return svg('g', {class: names, transform: `translate(${node.x - WIDTH / 2} ${node.y - HEIGHT / 2})`, 'data-node': node.name},
      svg('title', null, `${node.name} (${node.operator})`),
      svg('rect', {class: `box fill-${level(node)}`, width: WIDTH, height: HEIGHT, rx: 6}),
      svg('path', {class: `k-${node.kind}`, d: `M6 0h2v${HEIGHT}h-2a6 6 0 0 1-6-6v-${HEIGHT - 12}a6 6 0 0 1 6-6z`}),
      svg('text', {x: 15, y: 19}, format.shorten(node.name, 19)),
      svg('text', {class: 'small', x: 15, y: 35}, format.shorten(format.operator(node.operator), format.isNumber(value) ? 15 : 24)),
      format.isNumber(value) && svg('text', {class: 'value', x: WIDTH - 8, y: 35}, scale.text(value)));
  }

  // --- the chosen node ---

  const link = (node) => el('button', {type: 'button', class: 'link', onclick: () => choose(node, true)}, node.name);

  function links(indices) {
    const shown = indices.map((i) => facts.nodes[i]).filter((node) => node.isShown);
    return shown.length === 0 ? '' : shown.map((node, i) => [i > 0 && ', ', link(node)]);
  }

  function errorFacts(node) {
    const layer = node.layers[node.layers.length - 1];
    return dom.facts([
      ['Signal to noise', node.error && (node.error.sqnr_db === null ? 'nothing differs' : format.db(node.error.sqnr_db))],
      ['Largest error', node.error && format.number(node.error.max_abs_error)],
      ['By itself', layer && format.db(layer.local_db)],
      ['Model, it alone', layer && format.db(layer.alone_db)],
      ['Model without it', layer && format.db(layer.without_db)],
      ['Cause', layer && layer.cause],
      ['Remedy', layer && layer.remedy],
    ]);
  }

  function timeFacts(node) {
    const step = node.step;
    if (!step) return [];
    const others = step.nodes.filter((name) => name !== node.name);
    return dom.facts([
      ['Time', `${format.ms(step.median_ms)}, ${format.percent(step.share)} of a run`],
      ['In one step with', others.join(', ')],
      ['In floats', step.against_ms && `${format.ms(step.against_ms)} (${format.times(step.against_ms / step.median_ms)})`],
      ['Output', format.shape(step.output_shape)],
      ['Kernel', step.kernel],
      ['Why', step.why],
    ]);
  }

  function decisionList(node) {
    const rows = facts.decisionsOf(node);
    if (rows.length === 0) return el('p', {class: 'muted'}, 'No decision names this node.');
    return el('ol', null, rows.map((d) =>
      el('li', null, el('strong', null, d.decision), ` in ${d.pass}`, d.node !== node.name && [' (', d.node, ')'], d.reason && [': ', d.reason])));
  }

  function patternList(node) {
    const rows = node.operators.concat(node.name).map((name) => facts.explained.get(name)).filter(Boolean);
    const missed = rows.flatMap((row) => row.not_matched);
    const refused = rows.flatMap((row) => row.dtypes).filter((d) => d.outcome !== 'accepted');
    if (missed.length + refused.length === 0) return [];
    return el('details', null, el('summary', null, 'Patterns and dtypes that were tried'),
      el('ul', null, missed.map((m) => el('li', null, el('code', null, m.pattern), ': ', m.why)),
        refused.map((d) => el('li', null, `dtype config ${d.index}: `, Object.entries(d).filter(([k]) => k !== 'index')
          .map(([k, v]) => `${k} ${v}`).join(', ')))));
  }

  function show(node) {
    const panel = dom.id('node');
    panel.scrollTop = 0;
    if (!node) {
      dom.fill(panel, el('h3', null, 'No node is chosen'), el('p', {class: 'muted'},
        'Click a node, search for its name, or use the arrow keys in the graph.'));
      return;
    }
    dom.fill(panel, el('h3', {'data-chosen': node.name}, node.name),
      el('p', null, el('code', null, node.operator)),
      el('p', null, el('span', {class: 'badge plain'}, KINDS[node.kind] || node.kind)),
      el('dl', {class: 'facts'}, dom.facts([['Computes', node.operators.length > 0 && node.operators.join(', ')], ['Reads', links(node.inputs)],
        ['Read by', links(node.users)]]), errorFacts(node), timeFacts(node)),
      facts.tensorsOf(node).map((tensor) => [el('h4', null, tensor.weight ? 'Weight' : tensor.layer === '' ? 'Gives' : `Reads ${tensor.value || 'an input'}`), charts.histogram(tensor)]),
      el('h4', null, 'Decisions'), decisionList(node), patternList(node));
  }

  function choose(node, isMoved) {
    chosen = node;
    near = new Set(node ? [node] : []);
    show(node);
    if (node && node.isShown && (isMoved || !view.isShown(node))) view.show(node);
    view.refresh();
  }

  // From another part of the page.
  function visit(node) {
    choose(node, true);
    dom.id('graph').scrollIntoView();
    dom.id('node').focus({preventScroll: true});
  }

  // Arrow keys: to what the node gives its value to, to what it reads, and to its neighbours.
  function step(event) {
    const nodes = drawing.nodes;
    if (event.key === 'Escape') choose(null);
    else if (event.key === 'Enter' && chosen) dom.id('node').focus();
    else if (!event.key.startsWith('Arrow')) return false;
    else if (!chosen) choose(nodes[0]);
    else {
      const shown = (indices) => indices.map((i) => facts.nodes[i]).filter((n) => n.isShown);
      const level = nodes.filter((n) => n.y === chosen.y).sort((a, b) => a.x - b.x);
      const place = level.indexOf(chosen);
      const next = {ArrowDown: shown(chosen.users)[0], ArrowUp: shown(chosen.inputs)[0], ArrowLeft: level[place - 1],
        ArrowRight: level[place + 1]}[event.key];
      if (next) choose(next);
    }
    return true;
  }

  // --- tools ---

  function search(text) {
    const wanted = text.trim().toLowerCase();
    found = wanted === '' ? [] : drawing.nodes.filter((n) =>
      n.name.toLowerCase().includes(wanted) || n.operator.toLowerCase().includes(wanted) || n.operators.some((o) => o.toLowerCase().includes(wanted)));
    at = -1;
    dom.fill('graph-found', wanted === '' ? '' : format.plural(found.length, 'node'));
    view.refresh();
  }

  function next() {
    if (found.length === 0) return;
    at = (at + 1) % found.length;
    dom.fill('graph-found', `${at + 1} of ${format.plural(found.length, 'node')}`);
    choose(found[at], true);
  }

  function worstNode() {
    const sign = scale.isGreaterBetter ? 1 : -1;
    const rated = drawing.nodes.filter((n) => format.isNumber(scale.value(n)));
    return rated.reduce((a, b) => (a && sign * scale.value(a) <= sign * scale.value(b) ? a : b), null);
  }

  function drawLegend() {
    const kinds = Object.keys(KINDS).filter((kind) => drawing.nodes.some((node) => node.kind === kind));
    dom.fill('graph-legend', kinds.map((kind) => el('li', null, el('i', {class: `b-${kind}`}), KINDS[kind])),
      scale.names.map((name, i) => el('li', null, el('i', {class: `b-${i}`}), name)), el('li', null, el('i', {class: 'b-none'}), scale.none));
  }

  function drawTools() {
    const field = el('input', {
      type: 'search', placeholder: 'Find a node', 'aria-label': 'Find a node of the graph', id: 'graph-search',
      oninput: () => search(field.value), onkeydown: (event) => { if (event.key === 'Enter') next(); },
    });
    const button = (label, name, onclick) => el('button', {type: 'button', 'aria-label': name, title: name, onclick}, label);
    dom.fill('graph-tools', field, el('span', {id: 'graph-found', class: 'count', role: 'status'}), el('span', {class: 'grow'}),
      facts.bench && dom.choice('Colour', [['error', 'Error'], ['time', 'Time']], 'error', (value) => {
        scale = SCALES[value];
        drawLegend();
        view.refresh();
      }),
      el('button', {type: 'button', id: 'graph-worst', onclick: () => { const node = worstNode(); if (node) choose(node, true); }}, 'Worst'),
      el('span', {class: 'group', role: 'group', 'aria-label': 'Zoom'}, button('\u2212', 'Zoom out', () => view.zoom(1 / 1.3)),
        button('Fit', 'Fit the whole graph', () => view.fit()), button('+', 'Zoom in', () => view.zoom(1.3))));
  }

  function make() {
    const host = dom.id('graph-view');
    drawing = layout.make(facts.nodes, facts.data.graph.layout);
    host.dataset.layout = drawing.by;
    view = viewport.make(host, drawing, {
      node: drawNode, fill: (node) => `fill-${level(node)}`, kind: (node) => `k-${node.kind}`,
      isNear: (edge) => near.has(edge.from) || near.has(edge.to),
    }, {choose: (node) => choose(node), key: step});
    host.append(el('p', {class: 'hint'}, 'drag to move, ctrl + wheel to zoom'));
    drawTools();
    drawLegend();
    const worst = (facts.data.analyze ? facts.data.analyze.findings : []).map((finding) => facts.findLayer(finding.layer));
    chosen = worst.find((node) => node && node.operators.length > 0) || worstNode();
    show(chosen);
    near = new Set(chosen ? [chosen] : []);
    if (drawing.nodes.length > 0) view.begin(chosen);
    // On paper there is no zooming: the whole graph where it can be read.
    addEventListener('beforeprint', () => { view.fit(); view.paint(); });
  }

  return {make, visit};
})();
