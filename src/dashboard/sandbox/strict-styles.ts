/**
 * xterm.js makes `<style>` elements and `style` attributes, which a policy `style-src 'self'` forbids. The same rules are allowed if a
 * script gives them to the page as a style sheet that it adopts, and as properties of an element's style. Elements are made that way
 * until the function that is returned is called.
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

/** The text of the element is a style sheet of the page, until the element is removed. */
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
