// A drawing that is panned and zoomed, of which only what is in sight is drawn: in detail from near, as one shape for
// each colour from afar. Ten thousand nodes so take no longer than those on the screen.
const viewport = (() => {
  const {svg} = dom;
  const BAND = 400; // height of the strips that nodes and edges are found by
  const MOST_DETAILED = 500, LEAST_SCALE = 0.0004, MOST_SCALE = 3, READABLE = 0.7;

  // Strips of the drawing with what begins in them; what is taller than two strips is looked at every time.
  function strips(items, top, bottom) {
    const found = [];
    const long = [];
    for (const item of items) {
      const first = Math.floor(top(item) / BAND), last = Math.floor(bottom(item) / BAND);
      if (last - first > 2) { long.push(item); continue; }
      for (let i = first; i <= last; i++) (found[i] = found[i] || []).push(item);
    }
    return (y0, y1) => {
      const seen = new Set(long);
      for (let i = Math.floor(y0 / BAND); i <= Math.floor(y1 / BAND); i++) for (const item of found[i] || []) seen.add(item);
      return [...seen];
    };
  }

  // drawing: of layout.make. draw: {node(node), fill(node), kind(node)}; on: {choose(node), key(event)}
  function make(host, drawing, draw, on) {
    const {WIDTH, HEIGHT} = layout;
    const view = {x: 0, y: 0, scale: 1}; // the world's place at the upper left corner
    const back = svg('g'), edges = svg('g'), front = svg('g');
    const world = svg('g', null, back, edges, front);
    const root = svg('svg', {
      tabindex: '0', role: 'application', 'aria-label': 'Graph: arrow keys choose nodes, with shift they move the view; plus, minus and 0 zoom',
    }, world);
    host.append(root);

    const nodesAt = strips(drawing.nodes, (n) => n.y - HEIGHT / 2, (n) => n.y + HEIGHT / 2);
    const edgesAt = strips(drawing.edges, (e) => Math.min(e.from.y, e.to.y), (e) => Math.max(e.from.y, e.to.y));
    let isWaiting = false;

    const size = () => ({width: root.clientWidth || 800, height: root.clientHeight || 500});

    function inSight(margin) {
      const {width, height} = size();
      return {x0: view.x - margin, y0: view.y - margin, x1: view.x + width / view.scale + margin, y1: view.y + height / view.scale + margin};
    }

    function drawIslands() {
      back.replaceChildren(...drawing.islands.flatMap((box) => [
        svg('rect', {class: 'island', x: box.x0, y: box.y0, width: box.x1 - box.x0, height: box.y1 - box.y0, rx: 10}),
        svg('text', {class: 'island-name', x: box.x0 + 10, y: box.y0 - 4}, box.kind),
      ]));
    }

    function drawNear(nodes) {
      front.replaceChildren(...nodes.map((node) => draw.node(node)));
    }

    const box = (n) => `M${n.x - WIDTH / 2} ${n.y - HEIGHT / 2}h${WIDTH}v${HEIGHT}h${-WIDTH}z`;

    // From afar: a shape for each fill and each kind.
    function drawFar(nodes) {
      const fills = new Map();
      const add = (name, path) => fills.set(name, (fills.get(name) || '') + path);
      for (const node of nodes) {
        add('far ' + draw.fill(node), box(node));
        add(draw.kind(node), `M${node.x - WIDTH / 2} ${node.y - HEIGHT / 2}h14v${HEIGHT}h-14z`);
      }
      front.replaceChildren(...[...fills].map(([name, d]) => svg('path', {class: name, d})));
    }

    function drawEdges(found, isNear) {
      const plain = found.filter((e) => !draw.isNear(e)).map((e) => e.path).join('');
      const near = found.filter(draw.isNear).map((e) => e.path).join('');
      edges.replaceChildren(svg('path', {class: 'edge', d: plain, 'vector-effect': isNear ? null : 'non-scaling-stroke'}),
        svg('path', {class: 'edge near', d: near}));
    }

    function paint() {
      isWaiting = false;
      const sight = inSight(60);
      const nodes = nodesAt(sight.y0, sight.y1).filter((n) =>
        n.x + WIDTH / 2 >= sight.x0 && n.x - WIDTH / 2 <= sight.x1 && n.y + HEIGHT / 2 >= sight.y0 && n.y - HEIGHT / 2 <= sight.y1);
      const isNear = nodes.length <= MOST_DETAILED;
      (isNear ? drawNear : drawFar)(nodes);
      drawEdges(edgesAt(sight.y0, sight.y1), isNear);
      world.setAttribute('transform', `scale(${view.scale}) translate(${-view.x} ${-view.y})`);
      host.dataset.drawn = nodes.length;
      host.dataset.scale = view.scale.toFixed(4);
    }

    function refresh() {
      if (isWaiting) return;
      isWaiting = true;
      requestAnimationFrame(paint);
    }

    function zoom(factor, atX, atY) {
      const {width, height} = size();
      const px = atX ?? width / 2, py = atY ?? height / 2;
      const scale = Math.min(MOST_SCALE, Math.max(LEAST_SCALE, view.scale * factor));
      view.x += px / view.scale - px / scale;
      view.y += py / view.scale - py / scale;
      view.scale = scale;
      refresh();
    }

    function pan(dx, dy) {
      view.x -= dx / view.scale;
      view.y -= dy / view.scale;
      refresh();
    }

    // The whole drawing.
    function fit() {
      const {width, height} = size();
      view.scale = Math.max(LEAST_SCALE, Math.min(1, (width - 40) / (drawing.width + 20), (height - 40) / (drawing.height + 20)));
      view.x = drawing.width / 2 - width / 2 / view.scale;
      view.y = drawing.height / 2 - height / 2 / view.scale;
      refresh();
    }

    function show(node) {
      const {width, height} = size();
      if (view.scale < READABLE) view.scale = 0.85;
      view.x = node.x - width / 2 / view.scale;
      view.y = node.y - height / 2 / view.scale;
      refresh();
    }

    function isShown(node) {
      const sight = inSight(0);
      return node.x - WIDTH / 2 > sight.x0 && node.x + WIDTH / 2 < sight.x1 && node.y - HEIGHT / 2 > sight.y0 && node.y + HEIGHT / 2 < sight.y1;
    }

    // The whole, where its text is readable; else around this node.
    function begin(node) {
      fit();
      if (view.scale >= READABLE) return;
      view.scale = 0.9;
      show(node || drawing.nodes[0]);
    }

    function nodeAt(event) {
      const place = root.getBoundingClientRect();
      const x = view.x + (event.clientX - place.left) / view.scale, y = view.y + (event.clientY - place.top) / view.scale;
      return nodesAt(y, y).find((n) => Math.abs(n.x - x) <= WIDTH / 2 && Math.abs(n.y - y) <= HEIGHT / 2) || null;
    }

    // Fingers and mouse: one pointer pans, two zoom; what hardly moved was a click.
    const pointers = new Map();
    let moved = 0;
    root.addEventListener('pointerdown', (event) => {
      root.setPointerCapture(event.pointerId);
      pointers.set(event.pointerId, event);
      if (pointers.size === 1) moved = 0;
    });
    root.addEventListener('pointermove', (event) => {
      const before = pointers.get(event.pointerId);
      if (!before) return;
      const others = [...pointers.values()].filter((p) => p.pointerId !== event.pointerId);
      moved += Math.hypot(event.clientX - before.clientX, event.clientY - before.clientY);
      if (others.length === 0) pan(event.clientX - before.clientX, event.clientY - before.clientY);
      else {
        const distance = (p) => Math.hypot(p.clientX - others[0].clientX, p.clientY - others[0].clientY) || 1;
        const place = root.getBoundingClientRect();
        zoom(distance(event) / distance(before), (event.clientX + others[0].clientX) / 2 - place.left,
          (event.clientY + others[0].clientY) / 2 - place.top);
      }
      pointers.set(event.pointerId, event);
    });
    const release = (event) => {
      const wasOne = pointers.size === 1 && pointers.delete(event.pointerId);
      pointers.delete(event.pointerId);
      if (event.type === 'pointerup' && wasOne && moved < 5) on.choose(nodeAt(event));
    };
    root.addEventListener('pointerup', release);
    root.addEventListener('pointercancel', release);
    // The page scrolls by the wheel alone; with ctrl it is a zoom, as trackpads send it.
    root.addEventListener('wheel', (event) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      const place = root.getBoundingClientRect();
      zoom(Math.exp(-event.deltaY * 0.004), event.clientX - place.left, event.clientY - place.top);
    }, {passive: false});
    root.addEventListener('keydown', (event) => {
      const moves = {ArrowUp: [0, 80], ArrowDown: [0, -80], ArrowLeft: [80, 0], ArrowRight: [-80, 0]};
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key === '+' || event.key === '=') zoom(1.3);
      else if (event.key === '-') zoom(1 / 1.3);
      else if (event.key === '0') fit();
      else if (event.shiftKey && moves[event.key]) pan(...moves[event.key]);
      else if (!on.key(event)) return;
      event.preventDefault();
    });
    new ResizeObserver(refresh).observe(root);

    drawIslands();
    return {begin, refresh, zoom, fit, show, isShown, paint, root, view};
  }

  return {make};
})();
