// Time, the roofline and memory.
const cost = (() => {
  const {el} = dom;

  function meter(share, most) {
    const bar = el('i');
    bar.style.width = `${most > 0 ? 100 * share / most : 0}%`;
    return el('span', {class: 'meter'}, bar);
  }

  function timeTable(bench) {
    const most = Math.max(...bench.layers.map((s) => s.share), 0);
    const number = (label, value, text, hint) => ({label, hint, kind: 'number', first: 'descending', value, cell: (s) => text(value(s))});
    const speedup = (s) => (s.against_ms && s.median_ms > 0 ? s.against_ms / s.median_ms : null);
    const columns = [
      {label: 'Step', kind: 'name', value: (s) => s.node || '(result)', cell: (s) => accuracy.name(s.node || '(result)', facts.find(s.node))},
      {label: 'Output', value: (s) => format.shape(s.output_shape)},
      {label: 'Quantized', kind: 'number', first: 'descending', value: (s) => s.median_ms, cell: (s) => [format.ms(s.median_ms), meter(s.share, most)]},
      number('Share', (s) => s.share, (x) => format.percent(x)),
      number('Float', (s) => s.against_ms ?? null, format.ms, 'the same nodes in the float model'),
      {label: 'Faster by', kind: 'number', value: speedup, hint: 'float time over quantized time',
        cell: (s) => (speedup(s) === null ? format.NONE : el('span', {class: speedup(s) < 1 ? 'chip b-4' : null}, format.times(speedup(s))))},
      number('GOPS', (s) => (s.macs > 0 ? s.gops : null), format.number),
      number('Of peak', (s) => (s.macs > 0 ? s.share_of_peak : null), (x) => format.percent(x, 0)),
      number('GB/s', (s) => s.gbs, format.number),
      {label: 'Kernel', kind: 'words', value: (s) => s.kernel, cell: (s) => [el('code', null, s.kernel), s.why && el('div', {class: 'muted'}, s.why)]},
    ];
    return table.make({name: 'time', rows: bench.layers, columns, sort: [2, -1]}).element;
  }

  function total(bench) {
    const line = (name, s) => `${name} ${format.ms(s.median_ms)} (quartiles ${format.ms(s.lower_ms)} and ${format.ms(s.upper_ms)})`;
    return `${line('Quantized', bench.model)}, ${line('float', bench.against)}: ${format.times(bench.speed_ratio)}. Medians of ` +
      `${format.plural(bench.model.runs, 'run')} in turns, batch ${bench.batch}, ${format.plural(bench.threads, 'thread')}.`;
  }

  function memory(bench) {
      const batches = [
          [ 'integers', bench.memory, bench.layers ],
          [ 'floats', bench.against_memory, bench.against_layers ]
      ].filter(([, m ]) => m);
      const most = Math.max(...batches.map(([, m ]) => m.block_bytes));
      return [
          el('p', {class : 'lead'},
             'One block holds the results between steps. Each area is a result: from the step that writes it to the last that reads it, ' +
                 'at its place in the block. The line is what lives at once.'),
          batches.map(
              ([
                  kind, m, layers
              ]) => [el('h3', null, kind === 'integers' ? 'Quantized' : 'Float'),
                     el('p', null,
                        `${format.bytes(m.block_bytes)} in one block, at least ${
                            format.bytes(m.least_bytes)} live at once` +
                            (m.block_count > 1 ? `, ${format.count(m.block_count)} blocks` : '') +
                            `; packed weights ${format.bytes(m.weight_bytes)}`),
                     charts.memoryChart(m, layers || [], kind, most),
      ]),
          el('p', {class : 'muted'},
             `Peak of the whole process: ${format.bytes(bench.peak_bytes)}.`),
      ];
  }

  function hide(...names) {
    for (const name of names) dom.id(name).classList.add('hidden');
  }

  function make() {
    const bench = facts.bench;
    if (!bench) return hide('time', 'roofline', 'memory');
    if (bench.layers.length === 0) {
      dom.fill('time-body', el('p', null, total(bench)), el('p', {class: 'note'}, 'This model runs node by node, without a plan: there are no steps to tell.'));
      return hide('roofline', 'memory');
    }
    dom.fill('time-body', el('p', null, total(bench)), timeTable(bench));
    dom.fill('roofline-body', el('p', {class: 'lead'}, 'How fast a layer computes, over how much it computes for each byte. A layer lies below the roof that ' +
      'stops it: reading, or arithmetic. The area of a dot is its share of the time; teal is quantized, orange is float.'), charts.roofline(bench, graph.visit));
    if (bench.memory) dom.fill('memory-body', memory(bench));
    else hide('memory');
  }

  return {make};
})();
