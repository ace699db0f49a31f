// The error of each layer, and the ranges of tensors.
const accuracy = (() => {
  const {el} = dom;
  const FIRST_CARDS = 12;

  // A name that leads to the node in the graph.
  function name(text, node) {
    return node ? el('button', {type: 'button', class: 'link', onclick: () => graph.visit(node)}, text) : text;
  }

  function chip(db) {
    if (!format.isNumber(db)) return format.NONE;
    const level = [40, 30, 20, 10].findIndex((bound) => db >= bound);
    return el('span', {class: `chip b-${level < 0 ? 4 : level}`}, db.toFixed(1));
  }

  const decibels = (label, key, hint) => ({label, hint, kind: 'number', value: (row) => row[key], cell: (row) => chip(row[key])});

  function analyzed() {
    const columns = [
      {label: 'Layer', kind: 'name', value: (r) => r.float_node, cell: (r) => name(r.float_node, facts.find(r.float_node))},
      {label: 'Operator', value: (r) => format.operator(r.operator), cell: (r) => el('span', {title: r.operator}, format.operator(r.operator))},
      decibels('Alone', 'alone_db', 'the outputs of the model with this layer alone quantized'),
      decibels('Without', 'without_db', 'the outputs of the model with all layers quantized but this one'),
      decibels('Local', 'local_db', 'the layer\u2019s result where it alone is quantized and reads exact values'),
      decibels('Weights', 'weights_db', 'the same with only its weight quantized'),
      decibels('Reads', 'activations_db', 'the same with only what it reads quantized'),
      decibels('Cumulative', 'cumulative_db', 'the layer\u2019s result in the quantized model'),
      {label: 'Cause and remedy', kind: 'words', value: (r) => r.cause, cell: (r) => (r.cause ? [el('span', null, r.cause), r.remedy && el('div', {class: 'muted'}, r.remedy)] : '')},
    ];
    const isMeasured = facts.layers.some((r) => format.isNumber(r.alone_db));
    return [
      el('p', {class: 'lead'}, 'Signal to noise in dB, more is better. Alone: what is left of the model\u2019s outputs if this layer alone is quantized. ' +
        'Hover a head for what it says.'),
      findings(),
      table.make({name: 'layers', rows: facts.layers, columns, sort: [isMeasured ? 2 : 4, 1], also: (r) => `${r.operator} ${r.remedy}`}).element,
    ];
  }

  function findings() {
    const rows = facts.data.analyze.findings;
    if (rows.length === 0) return el('p', {class: 'note'}, 'No detector found anything that costs accuracy.');
    const columns = [
      {label: 'Finding', value: (r) => r.kind, cell: (r) => el('code', {class: 'whole'}, r.kind)},
      {label: 'Layer', kind: 'name', value: (r) => r.layer, cell: (r) => name(r.layer, facts.findLayer(r.layer))},
      decibels('dB', 'db', 'what the layer loses'),
      {label: 'Cause', kind: 'words', value: (r) => r.cause}, {label: 'Remedy', kind: 'words', value: (r) => r.remedy},
    ];
    return [el('h3', null, 'Findings, causes before what follows from them'), table.make({name: 'findings', rows, columns}).element, el('h3', null, 'All layers')];
  }

  function compared() {
    const columns = [
      {label: 'Node', kind: 'name', value: (r) => r.quantized_node, cell: (r) => name(r.quantized_node, facts.find(r.quantized_node))},
      {label: 'Float node', kind: 'name', value: (r) => r.float_node},
      decibels('SQNR', 'sqnr_db', 'the node\u2019s result in the quantized model against the float model\u2019s'),
      {label: 'Largest error', kind: 'number', first: 'descending', value: (r) => r.max_abs_error, cell: (r) => format.number(r.max_abs_error)},
    ];
    return [el('p', {class: 'lead'}, 'Signal to noise of each value in the quantized model, in dB: errors of earlier layers are in it.'),
      table.make({name: 'layers', rows: facts.data.compare.layers, columns, sort: [2, 1]}).element];
  }

  // --- tensors ---

  function card(t) {
    const reader = t.layer && `, read by ${t.layer}`;
    const title = t.weight ? `Weight of ${t.layer}` : `${t.value || 'An input'}${reader}`;
    const cut = t.elements > 0 ? t.saturated / t.elements : 0;
    return el('div', {class: 'card', 'data-tensor': t.node}, el('h3', null, name(title, facts.findLayer(t.layer || t.node))),
      el('p', null, [format.isNumber(t.sqnr_db) && `${format.db(t.sqnr_db)} by rounding`, format.isNumber(t.scale) ? `scale ${format.number(t.scale)}, zero point ${t.zero_point}` : t.weight && 'a scale for each channel',
        t.saturated > 0 && `${format.percent(cut, cut < 0.01 ? 3 : 1)} beyond the range`, t.masked > 0 && `${format.count(t.masked)} infinite`].filter(Boolean).join('; ')),
      charts.histogram(t), el('p', null, `seen ${format.number(t.seen_low)} to ${format.number(t.seen_high)}`));
  }

  const ORDERS = {
    worst: (a, b) => (a.sqnr_db ?? Infinity) - (b.sqnr_db ?? Infinity),
    cut: (a, b) => b.saturated / (b.elements || 1) - a.saturated / (a.elements || 1),
    graph: () => 0,
  };

  function tensorCards() {
    const state = {order: 'worst', kind: 'all', words: '', shown: FIRST_CARDS};
    const grid = el('div', {class: 'cards'}), count = el('span', {class: 'count', role: 'status'});
    const more = el('button', {type: 'button', class: 'more', onclick: () => { state.shown += 48; draw(); }});
    const search = el('input', {type: 'search', placeholder: 'Filter', 'aria-label': 'Filter tensors',
      oninput: () => { state.words = search.value.toLowerCase(); again(); }});
    const again = () => { state.shown = FIRST_CARDS; draw(); };

    function draw() {
      const rows = facts.tensors.filter((t) => (state.kind === 'all' || (state.kind === 'weights') === t.weight) &&
        `${t.node} ${t.value} ${t.layer}`.toLowerCase().includes(state.words)).sort(ORDERS[state.order]);
      grid.replaceChildren(...rows.slice(0, state.shown).map(card));
      dom.fill(count, format.plural(rows.length, 'tensor'));
      more.classList.toggle('hidden', rows.length <= state.shown);
      dom.fill(more, `Show more (${format.count(rows.length - state.shown)} left)`);
    }

    draw();
    return [
      el('p', {class: 'lead'}, 'Values of the first batch on a logarithmic scale of counts; the shaded part is the range that can be represented, what is cut off is red. ' +
        'Below, the range of each channel.'),
      el('div', {class: 'tools'}, search, dom.choice('Kind', [['all', 'All'], ['reads', 'Activations'], ['weights', 'Weights']], 'all', (v) => { state.kind = v; again(); }),
        dom.choice('Order', [['worst', 'Worst first'], ['cut', 'Most cut off'], ['graph', 'In order']], 'worst', (v) => { state.order = v; again(); }),
        el('span', {class: 'grow'}), count),
      grid, more,
    ];
  }

  function make() {
    dom.fill('layers-body', facts.data.analyze ? analyzed() : compared());
    if (facts.tensors.length > 0) dom.fill('tensors-body', tensorCards());
    else dom.id('tensors').classList.add('hidden');
  }

  return {make, name};
})();
