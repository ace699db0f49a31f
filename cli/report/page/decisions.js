// The decision record: what became of each operator, and every decision on the way.
const decisions = (() => {
  const {el} = dom;

  function select(label, values, onchange) {
    const field = el('select', {'aria-label': label, onchange: () => onchange(field.value)},
      el('option', {value: ''}, label), values.map((value) => el('option', {value}, value)));
    return field;
  }

  const unique = (rows, key) => [...new Set(rows.map((row) => row[key]).filter(Boolean))].sort();
  const nameOf = (text) => accuracy.name(text, facts.find(text));

  // A table with a choice of one value for each of some keys.
  function chosen(name, rows, columns, keys) {
    const wanted = {};
    const keep = (row) => Object.entries(wanted).every(([key, value]) => value === '' || row[key] === value);
    let made = null;
    const filters = keys.map(([key, label]) => select(label, unique(rows, key), (value) => { wanted[key] = value; made.redraw(keep); }));
    made = table.make({name, rows, columns, filters, keep, also: (row) => row.subject});
    return made.element;
  }

  function operators() {
    const columns = [
      {label: 'Operator', kind: 'name', value: (r) => r.name, cell: (r) => nameOf(r.name)},
      {label: 'What', value: (r) => format.operator(r.subject), cell: (r) => el('span', {title: r.subject}, format.operator(r.subject))},
      {label: 'Outcome', value: (r) => r.outcome, cell: (r) => el('span', {class: `badge ${r.outcome === 'quantized' ? 'good' : r.outcome === 'left float' ? 'fair' : 'plain'}`}, r.outcome)},
      {label: 'Multiply-accumulates', kind: 'number', first: 'descending', value: (r) => r.macs, cell: (r) => (r.macs > 0 ? format.count(r.macs) : format.NONE)},
      {label: 'Reason', kind: 'words', value: (r) => r.reason},
    ];
    return chosen('operators', facts.explain.operators, columns, [['outcome', 'Any outcome']]);
  }

  function record() {
    const columns = [
      {label: 'Pass', value: (r) => r.pass}, {label: 'Node', kind: 'name', value: (r) => r.node, cell: (r) => nameOf(r.node)},
      {label: 'Decision', value: (r) => r.decision}, {label: 'Rule', kind: 'words', value: (r) => r.rule, cell: (r) => r.rule && el('code', null, r.rule)},
      {label: 'Reason', kind: 'words', value: (r) => r.reason},
    ];
    return chosen('decisions', facts.explain.decisions, columns, [['pass', 'Any pass'], ['decision', 'Any decision']]);
  }

  function edges() {
    const columns = [
      {label: 'From', kind: 'name', value: (r) => r.from, cell: (r) => nameOf(r.from)}, {label: 'To', kind: 'name', value: (r) => r.to, cell: (r) => nameOf(r.to)},
      {label: 'Argument', value: (r) => r.argument}, {label: 'Observer', value: (r) => (r.class ? format.operator(r.class) : '')},
      {label: 'Rule', kind: 'words', value: (r) => r.rule},
    ];
    return table.make({name: 'edges', rows: facts.explain.edges, columns}).element;
  }

  function make() {
    if (!facts.data.explain) {
      dom.fill('decisions-body', el('p', {class: 'note'}, 'The model carries no decisions: it was quantized elsewhere.'));
      return;
    }
    dom.fill('decisions-body', el('h3', null, 'What became of each operator'), operators(), el('h3', null, 'Every decision'), record(),
      el('h3', null, 'Observers of edges'), edges());
  }

  return {make};
})();
