// Tables that sort and filter. Rows are drawn a hundred at a time, so that ten thousand cost nothing until they are asked for.
const table = (() => {
  const STEP = 100;

  // Numbers by size, text by its letters; what is missing comes last in both directions.
  function compare(a, b, direction) {
    const isEmpty = (x) => x === null || x === undefined || x === '' || Number.isNaN(x);
    if (isEmpty(a) || isEmpty(b)) return isEmpty(a) - isEmpty(b);
    const order = typeof a === 'number' && typeof b === 'number' ? a - b
      : String(a).localeCompare(String(b), 'en', {numeric: true});
    return direction * order;
  }

  const textOf = (columns, row, also) => [...columns.map((c) => c.value(row)), also(row)].filter((x) => typeof x === 'string').join('\n').toLowerCase();

  function cellOf(column, row) {
    const content = column.cell ? column.cell(row) : column.value(row);
    return dom.el('td', {class: column.kind || null}, content === null || content === undefined ? format.NONE : content);
  }

  // columns: [{label, value(row), cell(row), kind: 'number' | 'name' | 'words', hint, first: 'ascending' | 'descending'}]
  // options: {name, rows, columns, sort: [column, direction], filters: [element], keep(row), also(row): more text to be found by}
  function make(options) {
    const {columns, rows, name} = options;
    const state = {column: -1, direction: 1, shown: STEP, words: [], keep: options.keep || (() => true)};
    let texts = null; // made when somebody filters
    let order = rows.map((row, index) => index);

    const body = dom.el('tbody');
    const count = dom.el('span', {class: 'count', role: 'status'});
    const more = dom.el('button', {type: 'button', class: 'more', onclick: () => { state.shown += 10 * STEP; draw(); }});
    const heads = columns.map((column, index) =>
      dom.el('th', {scope: 'col', class: column.kind === 'number' ? 'number' : null, title: column.hint || null},
        dom.el('button', {type: 'button', onclick: () => sortBy(index)}, column.label)));

    function found() {
      if (state.words.length > 0) texts = texts || rows.map((row) => textOf(columns, row, options.also || (() => null)));
      return order.filter((index) => state.keep(rows[index]) && state.words.every((word) => texts[index].includes(word)));
    }

    function draw() {
      const indices = found();
      const shown = indices.slice(0, state.shown);
      body.replaceChildren(...shown.map((index) => dom.el('tr', null, columns.map((c) => cellOf(c, rows[index])))));
      dom.fill(count, indices.length === rows.length ? format.plural(rows.length, 'row')
        : `${format.count(indices.length)} of ${format.plural(rows.length, 'row')}`);
      more.classList.toggle('hidden', shown.length === indices.length);
      dom.fill(more, `Show more (${format.count(indices.length - shown.length)} left)`);
    }

    function arrange() {
      const column = columns[state.column];
      if (!column) return;
      order = rows.map((row, index) => index)
        .sort((a, b) => compare(column.value(rows[a]), column.value(rows[b]), state.direction) || a - b);
    }

    function sortBy(index, direction) {
      const first = columns[index].first === 'descending' ? -1 : 1;
      state.direction = direction || (state.column === index ? -state.direction : first);
      state.column = index;
      heads.forEach((head, i) => {
        if (i === index) head.setAttribute('aria-sort', state.direction > 0 ? 'ascending' : 'descending');
        else head.removeAttribute('aria-sort');
      });
      arrange();
      draw();
    }

    const search = dom.el('input', {
      type: 'search', placeholder: 'Filter', 'aria-label': `Filter ${name}`,
      oninput: () => {
        state.words = search.value.toLowerCase().split(/\s+/).filter((word) => word !== '');
        state.shown = STEP;
        draw();
      },
    });
    const view = dom.el('div', {class: 'table', tabindex: '0', role: 'region', 'aria-label': name},
      dom.el('table', null, dom.el('thead', null, dom.el('tr', null, heads)), body));
    const element = dom.el('div', {'data-table': name},
      dom.el('div', {class: 'tools'}, search, options.filters || [], dom.el('span', {class: 'grow'}), count), view, more);

    if (options.sort) sortBy(options.sort[0], options.sort[1]);
    else draw();
    return {element, redraw: (keep) => { state.keep = keep; state.shown = STEP; draw(); }};
  }

  return {make};
})();
