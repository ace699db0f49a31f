// The verdict: four figures, what they mean, what to do next.
const summary = (() => {
  const {el} = dom;
  const WORDS = {good: 'good', fair: 'fair', poor: 'poor'};

  const badge = (level) => (level ? el('span', {class: `badge ${level}`}, WORDS[level]) : null);

  function bars(pairs) {
    const most = Math.max(...pairs.map(([, value]) => value));
    return el('div', {class: 'bars'}, pairs.map(([name, value, text], i) => {
      const bar = el('i', {class: i === 0 ? 'float' : null});
      bar.style.width = `${most > 0 ? 100 * value / most : 0}%`;
      return el('div', {class: 'pair'}, el('span', null, name), bar, el('span', null, text));
    }));
  }

  function tile(name, title, figure, text, detail) {
    const level = facts.data.levels[name];
    return el('div', {class: 'tile', 'data-tile': name}, el('h3', null, title, badge(level)), el('p', {class: 'figure'}, figure), el('p', null, text), detail);
  }

  function accuracyText(v) {
    const parts = [];
    if (v.cosine !== null) parts.push(`cosine ${v.cosine.toFixed(5)}`);
    if (v.agreement !== undefined) parts.push(`${format.percent(v.agreement)} of predictions agree`);
    parts.push(`on ${format.plural(v.samples, 'sample')}`);
    return parts.join(', ');
  }

  function accuracyTile(v) {
    const [name, a, b] = v.float_metric !== undefined ? ['metric', v.float_metric, v.quantized_metric]
      : v.float_accuracy !== undefined ? ['right', v.float_accuracy, v.quantized_accuracy] : [null];
    const text = (x) => (name === 'right' ? format.percent(x) : format.number(x));
    const figure = v.sqnr_db === null ? 'equal' : format.db(v.sqnr_db);
    return tile('accuracy', 'Accuracy', figure, accuracyText(v), name && a >= 0 && b >= 0 && bars([[`float, ${name}`, a, text(a)], [`quantized`, b, text(b)]]));
  }

  function sizeTile(models) {
    const a = models.float.weight_bytes, b = models.quantized.weight_bytes;
    return tile('size', 'Size', b > 0 ? `${format.times(a / b)} smaller` : format.NONE, `weights, ${format.plural(models.float.parameters, 'parameter')}`,
      bars([['float', a, format.bytes(a)], ['quantized', b, format.bytes(b)]]));
  }

  function speedTile(bench) {
    if (!bench) return tile('speed', 'Speed', format.NONE, 'not timed (--no-bench)');
    const a = bench.against.median_ms, b = bench.model.median_ms, ratio = bench.speed_ratio;
    return tile('speed', 'Speed', ratio >= 1 ? `${format.times(ratio)} faster` : `${format.times(1 / ratio)} slower`,
      `median of ${format.plural(bench.model.runs, 'run')}, batch ${bench.batch}, ${format.plural(bench.threads, 'thread')}, ${bench.isa}`,
      bars([['float', a, format.ms(a)], ['quantized', b, format.ms(b)]]));
  }

  function coverageTile(c) {
    const hasMacs = c.macs > 0;
    const share = hasMacs ? c.quantized_macs / c.macs : c.operators > 0 ? c.quantized_operators / c.operators : 0;
    return tile('coverage', 'Coverage', format.percent(share), hasMacs ? 'of multiply-accumulates in integers' : 'of operators in integers',
      el('p', null, `${format.count(c.quantized_operators)} of ${format.plural(c.operators, 'operator')}, ${format.plural(c.float_islands, 'float island')}, ` +
        format.plural(c.conversions, 'conversion')));
  }

  // The worst level decides how it begins.
  function sentence() {
    const {levels, verdict, coverage, models, bench} = facts.data;
    const found = Object.values(levels);
    const parts = [];
    parts.push(levels.accuracy === 'poor' ? `the outputs keep only ${format.db(verdict.sqnr_db)} of the float model`
      : verdict.sqnr_db === null ? 'the outputs are equal to the float model\u2019s' : `the outputs keep ${format.db(verdict.sqnr_db)} of the float model`);
    if (models.quantized.weight_bytes > 0) parts.push(`weights are ${format.times(models.float.weight_bytes / models.quantized.weight_bytes)} smaller`);
    if (bench) parts.push(bench.speed_ratio >= 1 ? `a run is ${format.times(bench.speed_ratio)} faster` : `a run is ${format.times(1 / bench.speed_ratio)} slower`);
    const start = found.includes('poor') ? (levels.accuracy === 'poor' ? 'Not ready: ' : 'Look at it first: ') : found.includes('fair') ? 'Usable: ' : 'Good: ';
    return `${start}${parts.join(', ')}.`;
  }

  function command(text) {
    const button = el('button', {
      type: 'button',
      onclick: async () => {
        try { await navigator.clipboard.writeText(text); dom.fill(button, 'Copied'); } catch { select(code); dom.fill(button, 'Selected'); }
      },
    }, 'Copy');
    const code = el('code', null, text);
    return el('div', {class: 'command'}, code, button);
  }

  function select(element) {
    const range = document.createRange();
    range.selectNodeContents(element);
    getSelection().removeAllRanges();
    getSelection().addRange(range);
  }

  function about() {
    const {models, data, date, version} = facts.data;
    const machine = facts.bench ? facts.bench.machine : {};
    return dom.facts([
      ['Float model', models.float.file], ['Quantized model', models.quantized.file], ['Data', data],
      ['Layers analyzed', facts.data.analyze ? 'yes, in the reference model' : 'no: see what to do next'],
      ['Machine', machine.cpu && `${machine.cpu}, ${format.plural(machine.cores, 'core')}, ${machine.system} ${machine.release}`],
      ['Instruction set', facts.bench && facts.bench.isa], ['Made', `${date} by tare ${version}`],
    ]);
  }

  function make() {
    const {verdict, models, coverage, advice} = facts.data;
    dom.fill('sentence', sentence());
    dom.fill('tiles', accuracyTile(verdict), sizeTile(models), speedTile(facts.bench), coverageTile(coverage));
    dom.fill('advice', advice.map((a) => el('li', null, el('p', null, a.text), a.command && command(a.command))));
    dom.fill('about', about());
    dom.fill('made', `Made by tare ${facts.data.version} on ${facts.data.date}. One file, which loads nothing.`);
  }

  return {make};
})();
