// Where nodes of the graph lie: where graphviz put them, else by layers of our own.
const layout = (() => {
  const WIDTH = 166, HEIGHT = 45, GAP_X = 22, GAP_Y = 36; // as cli/report/layout.c asks graphviz
  const LARGE = 4000; // nodes, from which on one round of ordering must do

  // A node lies one layer below the lowest node that it reads.
  function rank(nodes) {
    const ranks = new Map();
    const layers = [];
    for (const node of nodes) {
      const above = node.inputs.filter((i) => ranks.has(i)).map((i) => ranks.get(i));
      const rank = above.reduce((most, r) => Math.max(most, r + 1), 0);
      ranks.set(node.index, rank);
      (layers[rank] = layers[rank] || []).push(node);
    }
    return {ranks, layers};
  }

  function mean(indices, place) {
    let sum = 0, count = 0;
    for (const index of indices) {
      const x = place.get(index);
      if (x !== undefined) { sum += x; count++; }
    }
    return count > 0 ? sum / count : null;
  }

  // Wanted places, moved apart from left to right, then back so that they lie around what was wanted.
  function spread(layer, wanted) {
    const step = WIDTH + GAP_X;
    const places = [];
    let shift = 0;
    layer.forEach((node, i) => {
      places[i] = i > 0 ? Math.max(wanted[i], places[i - 1] + step) : wanted[i];
      shift += wanted[i] - places[i];
    });
    return places.map((x) => x + shift / layer.length);
  }

  function sweep(layers, place, neighbours) {
    for (const layer of layers) {
      const wanted = new Map(layer.map((node) => [node, mean(neighbours(node), place) ?? place.get(node.index)]));
      layer.sort((a, b) => wanted.get(a) - wanted.get(b));
      const places = spread(layer, layer.map((node) => wanted.get(node)));
      layer.forEach((node, i) => place.set(node.index, places[i]));
    }
  }

  function byLayers(nodes) {
    const {ranks, layers} = rank(nodes);
    const place = new Map();
    for (const layer of layers) layer.forEach((node, i) => place.set(node.index, i * (WIDTH + GAP_X)));
    for (let round = 0; round < (nodes.length > LARGE ? 1 : 3); round++) {
      sweep(layers, place, (node) => node.inputs);
      sweep([...layers].reverse(), place, (node) => node.users);
    }
    sweep(layers, place, (node) => node.inputs);
    const left = Math.min(...layers.map((layer) => place.get(layer[0].index)), Infinity);
    for (const node of nodes) {
      node.x = place.get(node.index) - left + WIDTH / 2;
      node.y = ranks.get(node.index) * (HEIGHT + GAP_Y) + HEIGHT / 2;
    }
  }

  // Graphviz' places are taken only if there is one for every node.
  function byGraphviz(nodes, given, all) {
    for (const [index, x, y] of given.nodes) Object.assign(all[index], {x, y});
    return nodes.every((node) => format.isNumber(node.x) && format.isNumber(node.y));
  }

  function curve(from, to) {
    const y0 = from.y + HEIGHT / 2, y1 = to.y - HEIGHT / 2, bend = Math.max(12, (y1 - y0) / 2);
    return `M${from.x} ${y0}C${from.x} ${y0 + bend} ${to.x} ${y1 - bend} ${to.x} ${y1}`;
  }

  function spline(points) {
    let path = `M${points[0]} ${points[1]}C`;
    for (let i = 2; i < points.length; i++) path += (i > 2 ? ' ' : '') + points[i];
    return path;
  }

  function edgesOf(nodes, given, all) {
    if (given) return given.edges.map(([from, to, ...points]) => ({from: all[from], to: all[to], path: spline(points)}));
    const edges = [];
    for (const node of nodes)
      for (const input of node.inputs)
        if (all[input].isShown) edges.push({from: all[input], to: node, path: curve(all[input], node)});
    return edges;
  }

  // Boxes around islands, where graphviz kept them apart.
  function islandsOf(nodes, given) {
    const boxes = new Map();
    const boxed = new Set(given.islands);
    for (const node of nodes) {
      if (!boxed.has(node.island)) continue;
      const box = boxes.get(node.island) || {kind: node.kind, x0: Infinity, y0: Infinity, x1: -Infinity, y1: -Infinity};
      boxes.set(node.island, {
        kind: node.kind,
        x0: Math.min(box.x0, node.x - WIDTH / 2 - 8), y0: Math.min(box.y0, node.y - HEIGHT / 2 - 8),
        x1: Math.max(box.x1, node.x + WIDTH / 2 + 8), y1: Math.max(box.y1, node.y + HEIGHT / 2 + 8),
      });
    }
    return [...boxes.values()];
  }

  function make(all, given) {
    const nodes = all.filter((node) => node.isShown);
    const isGiven = Boolean(given) && byGraphviz(nodes, given, all);
    if (!isGiven) byLayers(nodes);
    const edges = edgesOf(nodes, isGiven ? given : null, all);
    const width = nodes.reduce((most, n) => Math.max(most, n.x), 0) + WIDTH / 2;
    const height = nodes.reduce((most, n) => Math.max(most, n.y), 0) + HEIGHT / 2;
    return {nodes, edges, islands: isGiven ? islandsOf(nodes, given) : [], width, height, by: isGiven ? 'graphviz' : 'layers'};
  }

  return {make, WIDTH, HEIGHT};
})();
