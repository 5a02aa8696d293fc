import { FitAddon } from '@xterm/addon-fit';
import { Terminal } from '@xterm/xterm';
import '@xterm/xterm/css/xterm.css';
import type { Execution } from '../../client/index.ts';
import { toastFailure } from '../ui/actions.tsx';

/** Shows an execution's terminal in the element until it ends, or the signal fires. */
export async function showTerminal(element: HTMLElement, execution: Execution, signal: AbortSignal): Promise<void> {
  const terminal = new Terminal({
    cursorBlink: !matchMedia('(prefers-reduced-motion: reduce)').matches,
    fontFamily: getComputedStyle(element).fontFamily,
    fontSize: 13,
    screenReaderMode: true,
    minimumContrastRatio: 4.5,
    theme: { background: '#101113', foreground: '#e6e6e9' },
  });
  const fit = new FitAddon();
  terminal.loadAddon(fit);
  const undo = makeStylesStrict();
  terminal.open(element);
  const attachment = execution.attach({ takeover: true, signal });
  const failed = (error: unknown) => signal.aborted || toastFailure(error);
  terminal.onData((text) => void attachment.write(text).catch(failed));
  terminal.onResize(({ cols, rows }) => void execution.resize({ cols, rows }, { signal }).catch(failed));
  const observer = new ResizeObserver(() => fit.fit());
  observer.observe(element);
  terminal.focus();
  try {
    for await (const { bytes } of attachment) await new Promise<void>((resolve) => terminal.write(bytes, resolve));
  } finally {
    observer.disconnect();
    terminal.dispose();
    undo();
  }
}

/**
 * xterm.js creates `<style>` elements and `style` attributes. The policy `style-src 'self'` forbids both, but allows adopted style sheets
 * and style properties. Replaces them in new elements. Returns a function that undoes this.
 */
function makeStylesStrict(): () => void {
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
