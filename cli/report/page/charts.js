// Histograms, the roofline and the memory of a run, as SVG.
const charts = (() => {
  const {el, svg} = dom;

  // --- histograms ---

  // Everything that has to be seen: what was counted, what was seen, what can be represented.
  function extent(t) {
    const points = [t.histogram_low, t.histogram_high, t.low, t.high].filter(format.isNumber);
    const low = Math.min(...points), high = Math.max(...points);
    const edge = (high - low || 1) * 0.03;
    return {low: low - edge, high: high + edge};
  }

  function bins(t, x, top, height) {
    const most = Math.log1p(Math.max(1, ...t.histogram));
    const width = (t.histogram_high - t.histogram_low) / t.histogram.length;
    const isRanged = format.isNumber(t.low) && format.isNumber(t.high);
    return t.histogram.map((n, i) => {
      const from = t.histogram_low + i * width, middle = from + width / 2;
      if (n === 0) return null;
      const tall = Math.max(1, height * Math.log1p(n) / most);
      const isCut = isRanged && (middle < t.low || middle > t.high);
      return svg('rect', {class: isCut ? 'bin cut' : 'bin', x: x(from), y: top + height - tall, width: Math.max(0.75, x(from + width) - x(from) - 0.4),
        height: tall}, svg('title', null, `${format.count(n)} from ${format.number(from)} to ${format.number(from + width)}`));
    });
  }

  // A line for each channel, sorted by its upper end, from its least to its greatest value.
  function channels(t, x, top, height) {
    const all = t.channel_low.map((low, i) => [low, t.channel_high[i]]).filter((c) => c.every(format.isNumber)).sort((a, b) => a[1] - b[1]);
    const every = Math.max(1, Math.ceil(all.length / 128));
    const shown = all.filter((c, i) => i % every === 0 || i === all.length - 1);
    const path = shown.map(([low, high], i) => {
      const y = (top + (i + 0.5) * height / shown.length).toFixed(1);
      return `M${x(low).toFixed(1)} ${y}H${Math.max(x(high), x(low) + 0.5).toFixed(1)}`;
    }).join('');
    return svg('path', {class: 'channel', d: path}, svg('title', null, `ranges of ${format.plural(all.length, 'channel')}, the greatest below`));
  }

  // Beside a narrow range its ends stand outside, within a wide one inside.
  function boundNames(t, x, width, y) {
    const ROOM = 56;
    const isNarrow = x(t.high) - x(t.low) < 2 * ROOM;
    const name = (at, isEnd, value) => svg('text', {x: at, y, 'text-anchor': isEnd ? 'end' : 'start'}, format.number(value));
    const isLeft = isNarrow && x(t.low) > ROOM, isRight = isNarrow && x(t.high) < width - ROOM;
    return [name(x(t.low) - (isLeft ? 3 : 0), isLeft, t.low), name(x(t.high) + (isRight ? 3 : 0), !isRight, t.high)];
  }

  function histogram(t) {
    const W = 300, TOP = 8, H = 80, hasChannels = t.channel_low.length > 1, BAND = hasChannels ? 36 : 0, HEIGHT = TOP + H + BAND + 22;
    const {low, high} = extent(t);
    if (!format.isNumber(low) || !format.isNumber(high)) return el('p', {class: 'muted'}, 'No values were seen.');
    const x = (value) => 4 + (W - 8) * (Math.min(high, Math.max(low, value)) - low) / (high - low);
    const isRanged = format.isNumber(t.low) && format.isNumber(t.high);
    const bottom = TOP + H + BAND + 4;
    const label = `Histogram from ${format.number(t.histogram_low)} to ${format.number(t.histogram_high)}` +
      (isRanged ? `, chosen range ${format.number(t.low)} to ${format.number(t.high)}` : '');
    return svg('svg', {viewBox: `0 0 ${W} ${HEIGHT}`, role: 'img', 'aria-label': label, class: 'histogram'},
      isRanged && svg('rect', {class: 'range', x: x(t.low), y: 2, width: Math.max(1, x(t.high) - x(t.low)), height: bottom - 2}),
      bins(t, x, TOP, H), svg('path', {class: 'axis', d: `M4 ${TOP + H}H${W - 4}`}),
      hasChannels && channels(t, x, TOP + H + 4, BAND - 4),
      isRanged && [t.low, t.high].map((v) => svg('path', {class: 'bound', d: `M${x(v)} 2V${bottom}`})),
      isRanged ? boundNames(t, x, W, HEIGHT - 5)
        : [svg('text', {x: 4, y: HEIGHT - 5}, format.number(t.histogram_low)),
          svg('text', {x: W - 4, y: HEIGHT - 5, 'text-anchor': 'end'}, format.number(t.histogram_high))]);
  }

  // --- roofline ---

  const bound = (values, round, least) => Math[round](Math.log10(round === 'floor' ? Math.min(...values, least) : Math.max(...values, least)) * 2) / 2;

  function roofline(bench, visit) {
    const W = 960, H = 520, LEFT = 64, RIGHT = 150, TOP = 16, BOTTOM = 48, peak = bench.machine.peak;
    const dotsOf = (rows, kind) => rows.filter((s) => s.macs > 0 && s.median_ms > 0 && s.bytes > 0).map((s) =>
      ({step: s, kind, x: 2 * s.macs / s.bytes, y: s.gops})).filter((d) => d.y > 0);
    const dots = [...dotsOf(bench.against_layers || [], 'float'), ...dotsOf(bench.layers, 'integers')].sort((a, b) => b.step.share - a.step.share);
    const x0 = bound(dots.map((d) => d.x), 'floor', 1), x1 = bound(dots.map((d) => d.x), 'ceil', 100);
    const y0 = bound(dots.map((d) => d.y), 'floor', 10), y1 = bound([peak.int8_gops, peak.float_gflops, ...dots.map((d) => d.y)].map((v) => 1.3 * v), 'ceil', 100);
    const x = (v) => LEFT + (Math.log10(v) - x0) / (x1 - x0) * (W - LEFT - RIGHT);
    const y = (v) => H - BOTTOM - (Math.log10(v) - y0) / (y1 - y0) * (H - TOP - BOTTOM);
    const decades = (from, to) => Array.from({length: Math.floor(to) - Math.ceil(from) + 1}, (_, i) => 10 ** (Math.ceil(from) + i));

    const grid = [
      decades(x0, x1).map((v) => [svg('path', {class: 'grid', d: `M${x(v)} ${TOP}V${H - BOTTOM}`}),
        svg('text', {x: x(v), y: H - BOTTOM + 16, 'text-anchor': 'middle'}, String(v))]),
      decades(y0, y1).map((v) => [svg('path', {class: 'grid', d: `M${LEFT} ${y(v)}H${W - RIGHT}`}),
        svg('text', {x: LEFT - 8, y: y(v) + 4, 'text-anchor': 'end'}, format.count(v))]),
      svg('text', {x: (LEFT + W - RIGHT) / 2, y: H - 10, 'text-anchor': 'middle'}, 'operations per byte read and written'),
      svg('text', {transform: `translate(14 ${(TOP + H - BOTTOM) / 2}) rotate(-90)`, 'text-anchor': 'middle'}, 'billions of operations per second'),
    ];
    // Names of slopes that would lie on each other stand together.
    const speeds = [];
    for (const [name, gbs] of [['memory', peak.memory_gbs], ['L3', peak.l3_gbs], ['L2', peak.l2_gbs]]) {
      const near = speeds.find((s) => Math.abs(Math.log(s.gbs / gbs)) < 0.15);
      if (near) near.name += ', ' + name;
      else if (gbs > 0) speeds.push({name, gbs});
    }
    const slopes = speeds.map(({name, gbs}) => {
      const top = Math.max(peak.int8_gops, peak.float_gflops);
      const from = Math.max(10 ** x0, 10 ** y0 / gbs), to = Math.min(10 ** x1, top / gbs);
      if (from >= to) return null;
      return [svg('path', {class: 'slope', d: `M${x(from)} ${y(from * gbs)}L${x(to)} ${y(to * gbs)}`}),
        svg('text', {transform: `translate(${x(from) + 6} ${y(from * gbs) - 6}) rotate(${Math.atan2(y(to * gbs) - y(from * gbs), x(to) - x(from)) * 180 / Math.PI})`},
          `${name}, ${format.number(gbs)} GB/s`)];
    });
    const roof = (gops, kind, name) => [svg('path', {class: `roof ${kind}`, d: `M${LEFT} ${y(gops)}H${W - RIGHT}`}),
      svg('text', {x: W - RIGHT + 8, y: y(gops) + 4}, `${name}, ${format.number(gops)}`)];
    const names = [], nameOf = format.apart(dots.map((d) => d.step.node), 24);
    const marks = dots.map((d) => {
      const s = d.step, r = 3.5 + 30 * Math.sqrt(s.share / Math.PI), cx = x(d.x), cy = y(d.y), label = nameOf(s.node);
      const width = 6 * label.length;
      const isFree = d.kind === 'integers' && names.every((n) => Math.abs(n.y - cy) > 12 || cx > n.x + n.width || n.x > cx + width);
      if (isFree) names.push({x: cx, y: cy, width, label});
      const text = `${s.node}: ${format.ms(s.median_ms)}, ${format.percent(s.share)} of a run, ${format.number(s.gops)} GOPS, ` +
        `${format.percent(s.share_of_peak, 0)} of the peak; ${s.kernel}`;
      const go = () => { const node = facts.find(s.node); if (node) visit(node); };
      return svg('circle', {class: `dot ${d.kind}`, cx, cy, r, tabindex: '0', role: 'button', 'aria-label': text, onclick: go,
        onkeydown: (event) => { if (event.key === 'Enter') go(); }}, svg('title', null, text));
    });
    return el('div', {class: 'chart'}, svg('svg', {viewBox: `0 0 ${W} ${H}`, role: 'group', 'aria-label': 'Roofline of the layers'}, grid, slopes,
      roof(peak.int8_gops, 'integers', 'integers'), roof(peak.float_gflops, 'float', 'floats'), marks,
      names.slice(0, 40).map((n) => svg('text', {class: 'strong', x: n.x + 6, y: n.y + 4, 'pointer-events': 'none'}, n.label))));
  }

  // --- memory ---

  // What lives in each step, in bytes.
  function live(memory, steps) {
    const sums = new Array(steps).fill(0);
    for (const p of memory.places) for (let i = p.first_step; i <= p.last_step && i < steps; i++) sums[i] += p.bytes;
    return sums;
  }

  function memoryChart(memory, layers, kind, most) {
    const W = 960, H = 220, LEFT = 64, RIGHT = 12, TOP = 10, BOTTOM = 34;
    const places = memory.places.filter((p) => !p.is_tail);
    const steps = Math.max(layers.length, ...places.map((p) => p.last_step + 1), 1);
    const x = (step) => LEFT + step / steps * (W - LEFT - RIGHT);
    const y = (bytes) => H - BOTTOM - bytes / (most || 1) * (H - TOP - BOTTOM);
    const nameOf = (step) => (layers[step] && layers[step].node) || `step ${step}`;
    const sums = live({places}, steps);
    const curve = sums.map((bytes, i) => `${i === 0 ? 'M' : 'L'}${x(i)} ${y(bytes)}H${x(i + 1)}`).join('');
    const every = Math.max(1, Math.ceil(steps / 12));
    return el('div', {class: 'chart'}, svg('svg', {viewBox: `0 0 ${W} ${H}`, role: 'img', 'aria-label': `Memory of a run in ${kind}: at most ${format.bytes(Math.max(0, ...sums))} live at once`},
      [0, 0.5, 1].map((part) => [svg('path', {class: 'grid', d: `M${LEFT} ${y(part * most)}H${W - RIGHT}`}),
        svg('text', {x: LEFT - 8, y: y(part * most) + 4, 'text-anchor': 'end'}, format.bytes(part * most))]),
      places.map((p) => svg('rect', {class: kind === 'floats' ? 'place float' : 'place', x: x(p.first_step), y: y(p.offset + p.bytes),
        width: x(p.last_step + 1) - x(p.first_step), height: Math.max(0.5, y(p.offset) - y(p.offset + p.bytes))},
        svg('title', null, `${format.bytes(p.bytes)} at ${format.count(p.offset)}, from ${nameOf(p.first_step)} to ${nameOf(p.last_step)}`))),
      svg('path', {class: 'live', d: curve}),
      Array.from({length: Math.ceil(steps / every)}, (_, i) => i * every).map((step) =>
        svg('text', {x: Math.min(x(step) + 2, W - 84), y: H - BOTTOM + 16}, format.shorten(nameOf(step), 12))),
      svg('text', {x: LEFT, y: H - 4}, `steps of a run in ${kind}`)));
  }

  return {histogram, roofline, memoryChart, live};
})();
