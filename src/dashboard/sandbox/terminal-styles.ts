/**
 * xterm.js creates `<style>` elements and `style` attributes. The policy `style-src 'self'` forbids both, but allows adopted style sheets
 * and style properties. Replaces them in new elements. Returns a function that undoes this.
 */
export function makeStylesStrict(): () => void {
  document.createElement = (tag: string): HTMLElement => {
    const element: HTMLElement = Document.prototype.createElement.call(document, tag === 'style' ? 'template' : tag);
    if (tag === 'style') adoptText(element);
    const setAttribute = element.setAttribute.bind(element);
    element.setAttribute = (name, value) => {
      if (name === 'style') element.style.cssText = value;
      else setAttribute(name, value);
    };
    return element;
  };
  return () => void Reflect.deleteProperty(document, 'createElement');
}

/** Makes the element's text an adopted style sheet until the element is removed. */
function adoptText(element: HTMLElement): void {
  const sheet = new CSSStyleSheet();
  document.adoptedStyleSheets.push(sheet);
  Object.defineProperty(element, 'textContent', {
    set(text: string) {
      sheet.replaceSync(text);
    },
  });
  element.remove = () => {
    document.adoptedStyleSheets = document.adoptedStyleSheets.filter((other) => other !== sheet);
    Element.prototype.remove.call(element);
  };
}
