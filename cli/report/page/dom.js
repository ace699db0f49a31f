'use strict';
// Elements. Names come from models and may hold anything: text reaches the page as text nodes alone, and what would
// steer a terminal or turn the direction of writing is shown as an escape.
const dom = (() => {
  const INVISIBLE = /[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

  function visible(text) {
    return String(text).replace(INVISIBLE, (c) => '\\u' + c.charCodeAt(0).toString(16).padStart(4, '0'));
  }

  function append(element, children) {
    for (const child of children.flat(Infinity)) {
      if (child === null || child === undefined || child === false) continue;
      element.append(child instanceof Node ? child : document.createTextNode(visible(child)));
    }
    return element;
  }

  function set(element, attributes) {
    for (const [name, value] of Object.entries(attributes || {})) {
      if (value === null || value === undefined || value === false) continue;
      if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
      else element.setAttribute(name, value === true ? '' : visible(value));
    }
    return element;
  }

  // el('p', {class: 'lead'}, 'text', element, ..)
  function el(tag, attributes, ...children) {
    return append(set(document.createElement(tag), attributes), children);
  }

  function svg(tag, attributes, ...children) {
    return append(set(document.createElementNS('http://www.w3.org/2000/svg', tag), attributes), children);
  }

  const id = (name) => document.getElementById(name);

  function fill(name, ...children) {
    const element = typeof name === 'string' ? id(name) : name;
    element.replaceChildren();
    return append(element, children);
  }

  // Terms and descriptions; pairs without a value are left out.
  function facts(pairs) {
    return pairs
      .filter(([, value]) => value !== null && value !== undefined && value !== false && value !== '')
      .map(([term, value]) => [el('dt', null, term), el('dd', null, value)]);
  }

  // A row of buttons of which one is pressed. choices: [value, label].
  function choice(label, choices, chosen, onchange) {
    const buttons = choices.map(([value, text]) =>
      el('button', {
        type: 'button', 'aria-pressed': String(value === chosen), 'data-value': value,
        onclick: () => {
          for (const b of buttons) b.setAttribute('aria-pressed', String(b.dataset.value === value));
          onchange(value);
        },
      }, text));
    return el('span', {class: 'group', role: 'group', 'aria-label': label}, buttons);
  }

  return {el, svg, id, fill, facts, choice, visible};
})();
