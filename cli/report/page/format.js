// Numbers and names as text.
const format = (() => {
  const NONE = '\u2013';
  const isNumber = (x) => typeof x === 'number' && Number.isFinite(x);

  function fixed(x, decimals) {
    return isNumber(x) ? x.toFixed(decimals) : NONE;
  }

  // Three digits, whatever the magnitude.
  function number(x) {
    if (!isNumber(x)) return NONE;
    const size = Math.abs(x);
    if (size >= 1e6 || (size > 0 && size < 1e-3)) return x.toExponential(2);
    return size >= 100 ? x.toFixed(0) : size >= 10 ? x.toFixed(1) : size >= 1 ? x.toFixed(2) : x.toPrecision(3);
  }

  // Floats are not as exact as that: single values, such as a mask of -3e38, outweigh all others.
  const MOST_DB = 200;
  const db = (x) => (!isNumber(x) ? NONE : x > MOST_DB ? `over ${MOST_DB} dB` : x.toFixed(1) + ' dB');
  const percent = (x, decimals = 1) => (isNumber(x) ? (100 * x).toFixed(decimals) + ' %' : NONE);
  const times = (x) => (isNumber(x) ? x.toFixed(2) + '\u00d7' : NONE);

  function ms(x) {
    if (!isNumber(x)) return NONE;
    return x >= 1 ? number(x) + ' ms' : number(x * 1000) + ' \u00b5s';
  }

  function scaled(x, step, units) {
    let unit = 0;
    for (; Math.abs(x) >= step && unit < units.length - 1; unit++) x /= step;
    return (unit === 0 ? String(Math.round(x)) : number(x)) + ' ' + units[unit];
  }

  const bytes = (x) => (isNumber(x) ? scaled(x, 1000, ['B', 'kB', 'MB', 'GB']) : NONE);
  const count = (x) => (isNumber(x) ? x.toLocaleString('en') : NONE);
  const shape = (sizes) => (sizes && sizes.length > 0 ? sizes.join('\u00d7') : NONE);

  // "torch.ao.nn.quantized.Conv2d": "Conv2d"; "torch.ops.aten.add.Tensor": "add".
  function operator(name) {
    const parts = name.split('.');
    const last = parts.pop();
    const isOverload = parts.length > 2 && parts[0] === 'torch' && parts[1] === 'ops' && parts.length === 4;
    return (isOverload ? parts.pop() : last) || name;
  }

  function plural(n, word) {
    return count(n) + ' ' + word + (n === 1 ? '' : 's');
  }

  function shorten(text, most) {
    text = dom.visible(text);
    if (text.length <= most) return text;
    const half = (most - 1) >> 1;
    return text.slice(0, most - 1 - half) + '\u2026' + text.slice(text.length - half);
  }

  // Names without the words that all of them end in; of long ones the end, which tells layers apart.
  function apart(names, most) {
    const words = names.map((name) => name.split('_'));
    const last = (list, i) => list[list.length - 1 - i];
    let same = 0;
    while (words.length > 1 && words.every((w) => w.length > same + 1 && last(w, same) === last(words[0], same))) same++;
    return (name) => {
      const list = name.split('_');
      const text = dom.visible(list.slice(0, list.length - same).join('_'));
      return text.length <= most ? text : '\u2026' + text.slice(text.length - most + 1);
    };
  }

  return {NONE, isNumber, fixed, number, db, percent, times, ms, bytes, count, shape, operator, plural, shorten, apart};
})();
