/**
 * xterm.js writes `<style>` elements and `style` attributes, which a policy `style-src 'self'` forbids. The same rules given to the page by
 * script are allowed: as a style sheet that the page adopts, and as properties of an element's style.
 */
function createElement(tag: string): HTMLElement {
  if (tag === 'style') return adoptedStyle();
  const element = Document.prototype.createElement.call(document, tag);
  const setAttribute = element.setAttribute.bind(element);
  element.setAttribute = (name, value) => {
    if (name === 'style') element.style.cssText = value;
    else setAttribute(name, value);
  };
  return element;
}

/** An element that stands for a `<style>`: its text goes into a style sheet, which goes when it is removed. */
function adoptedStyle(): HTMLElement {
  const sheet = new CSSStyleSheet();
  document.adoptedStyleSheets.push(sheet);
  const element = Document.prototype.createElement.call(document, 'template');
  Object.defineProperty(element, 'textContent', { set: (text: string) => sheet.replaceSync(text) });
  element.remove = () => {
    document.adoptedStyleSheets = document.adoptedStyleSheets.filter((other) => other !== sheet);
    Element.prototype.remove.call(element);
  };
  return element;
}

/** The document, for xterm.js to make its elements with. */
export const strictDocument: Document = new Proxy(document, {
  get(target, name) {
    if (name === 'createElement') return createElement;
    const value: unknown = Reflect.get(target, name, target);
    return typeof value === 'function' ? (value as (...args: unknown[]) => unknown).bind(target) : value;
  },
});

/** Runs what makes a terminal. A part of it does not use the document that it is given. */
export function openWithoutInlineStyles(open: () => void): void {
  document.createElement = (tag: string) => (tag === 'style' ? adoptedStyle() : Document.prototype.createElement.call(document, tag));
  try {
    open();
  } finally {
    Reflect.deleteProperty(document, 'createElement');
  }
}
