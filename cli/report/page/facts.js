// The data of the page, and what belongs together in it: for each node of the graph its errors, its time, its decisions.
const facts = (() => {
  const data = JSON.parse(dom.id('data').textContent);

  function group(rows, keysOf) {
    const found = new Map();
    for (const row of rows)
      for (const key of keysOf(row)) {
        if (!found.has(key)) found.set(key, []);
        found.get(key).push(row);
      }
    return found;
  }

  const bench = data.bench || null;
  const explain = data.explain || {operators: [], decisions: [], nodes: [], edges: []};
  const layers = data.analyze ? data.analyze.layers : [];
  const tensors = data.analyze ? data.analyze.tensors : data.tensors || [];

  const errors = new Map(data.compare.layers.map((row) => [row.quantized_node, row]));
  const steps = group(bench ? bench.layers : [], (step) => step.nodes);
  const decisions = group(explain.decisions, (d) => [d.node]);
  const outcomes = new Map(explain.operators.map((row) => [row.name, row]));
  const explained = new Map(explain.nodes.map((row) => [row.name, row]));
  const layersByOperator = group(layers, (layer) => [layer.float_node]);
  const tensorsByLayer = group(tensors, (tensor) => [tensor.layer]);
  // Without an analysis they are results, which anyone may read.
  const tensorsByGiver = group(tensors.filter((tensor) => tensor.layer === ''), (tensor) => [tensor.node]);

  const byName = new Map();
  const byOperator = new Map(); // of the float model
  const nodes = data.graph.nodes.map((node, index) => {
    const one = {...node, index, users: [], error: errors.get(node.name) || null, step: (steps.get(node.name) || [null])[0]};
    one.layers = (node.operators.length > 0 ? node.operators : [node.name]).flatMap((name) => layersByOperator.get(name) || []);
    one.isShown = !node.constant; // nor what is made of constants alone
    byName.set(node.name, one);
    for (const name of node.operators) byOperator.set(name, one);
    return one;
  });
  for (const node of nodes) for (const input of node.inputs) nodes[input].users.push(node.index);

  // Decisions name nodes of the graphs on the way: the operators of the float model, and the node itself.
  function decisionsOf(node) {
    const names = new Set([...node.operators, node.name]);
    return [...names].flatMap((name) => decisions.get(name) || []);
  }

  function tensorsOf(node) {
    return [...node.layers.flatMap((layer) => tensorsByLayer.get(layer.node) || []), ...(tensorsByGiver.get(node.name) || [])];
  }

  // A node by the name that some table gives it: of the graph, or of the float model.
  function find(name) {
    return byName.get(name) || byOperator.get(name) || null;
  }

  const layerByNode = new Map(layers.map((layer) => [layer.node, layer]));
  function findLayer(name) {
    const layer = layerByNode.get(name);
    return find(layer ? layer.float_node : name);
  }

  const sqnr = (node) => (node.error ? node.error.sqnr_db : null);
  const share = (node) => (node.step ? node.step.share : null);

  return {data, bench, explain, layers, tensors, nodes, find, findLayer, decisionsOf, tensorsOf, outcomes, explained, sqnr, share};
})();
