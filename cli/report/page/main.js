// Puts the page together. Parts far below are made when the first frame has been drawn.
(() => {
  const {el} = dom;
  const THEMES = {auto: 'Theme: auto', light: 'Theme: light', dark: 'Theme: dark'};

  function makeTheme() {
    const button = dom.id('theme');
    let theme = 'auto';
    const show = () => {
      dom.fill(button, THEMES[theme]);
      if (theme === 'auto') delete document.documentElement.dataset.theme;
      else document.documentElement.dataset.theme = theme;
    };
    button.addEventListener('click', () => {
      const names = Object.keys(THEMES);
      theme = names[(names.indexOf(theme) + 1) % names.length];
      show();
    });
    show();
  }

  // A link for each section that has something to show; the one in sight is marked.
  function makeSections() {
    const sections = [...document.querySelectorAll('main > section')].filter((s) => !s.classList.contains('hidden'));
    const links = new Map(sections.map((s) => [s, el('a', {href: `#${s.id}`}, s.querySelector('h2').textContent)]));
    dom.fill('sections', [...links.values()].map((a) => el('li', null, a)));
    // On a phone the row of links is longer than the screen.
    const show = (a) => {
      const list = dom.id('sections'), link = a.getBoundingClientRect(), row = list.getBoundingClientRect();
      if (link.left < row.left) list.scrollLeft += link.left - row.left;
      else if (link.right > row.right) list.scrollLeft += link.right - row.right;
    };
    const mark = () => {
      const current = sections.filter((s) => s.getBoundingClientRect().top < innerHeight / 3).pop() || sections[0];
      for (const [section, a] of links) {
        const was = a.hasAttribute('aria-current');
        if (section !== current) a.removeAttribute('aria-current');
        else if (!was) a.setAttribute('aria-current', 'true'), show(a);
      }
    };
    addEventListener('scroll', mark, {passive: true});
    mark();
  }

  // A part that fails says so in its place and leaves the others.
  function attempt(name, make) {
    try {
      make();
    } catch (error) {
      console.error(error);
      dom.id(name).append(el('p', {class: 'note'}, `This part could not be drawn: ${error.message}`));
    }
  }

  makeTheme();
  attempt('verdict', summary.make);
  attempt('graph', graph.make);
  attempt('layers', accuracy.make);
  attempt('time', cost.make);
  attempt('decisions', decisions.make);
  makeSections();
  document.documentElement.dataset.ready = 'true';
})();
