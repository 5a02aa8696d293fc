import { FitAddon } from '@xterm/addon-fit';
import { Terminal } from '@xterm/xterm';
import '@xterm/xterm/css/xterm.css';
import type { api, Attachment, Execution, OutputPart } from '../../client/index.ts';

interface TerminalOptions {
  readonly signal: AbortSignal;
  readonly isForScreenReader: boolean;
  /** No terminal was attached to the execution before. */
  readonly isNew: boolean;
  /** Called when another client becomes the writer, with the attachment that can take over. Null: this client is the writer again. */
  readonly onOtherWriter: (attachment: Attachment | null) => void;
}

/** Shows an execution's terminal in the element until it ends, or the signal fires. */
export async function showTerminal(element: HTMLElement, execution: Execution, options: TerminalOptions): Promise<void> {
  const { signal, isForScreenReader, isNew, onOtherWriter } = options;
  const { terminal, fit, close } = fill(element, isForScreenReader);
  const onWriter = (isWriter: boolean) => {
    terminal.options.disableStdin = !isWriter;
    onOtherWriter(isWriter ? null : attachment);
    resize();
  };
  const resize = () => {
    const { cols, rows, options: { disableStdin: isReader } } = terminal;
    if (isReader !== true) attachment.resize({ cols, rows }).catch(notAttached);
  };
  // The command waits until its output is drawn, so Ctrl-C has an effect at once.
  const attach = (takeover: boolean) => {
    terminal.options.disableStdin = false;
    onOtherWriter(null);
    return execution.attach({ takeover, hold: true, signal, onWriter });
  };
  let attachment = attach(true);
  const output = new Output(terminal, isNew ? 0 : execution.state.stdout_bytes);
  terminal.onData((text) => {
    // The terminal's own answers begin with an escape, and keys that are typed meanwhile do not.
    if (!output.isRepeated || !text.startsWith('\u001B')) void attachment.write(text).catch(notAttached);
  });
  terminal.onResize(resize);
  const observer = new ResizeObserver(fit);
  observer.observe(element);
  terminal.focus();
  try {
    for (;;) {
      resize();
      await output.draw(attachment);
      if (attachment.end !== null) return;
      await untilVisible(signal);
      // Output that had arrived, but was not drawn, is lost with the old attachment. So the kept output is drawn again.
      terminal.reset();
      attachment = attach(terminal.options.disableStdin !== true);
    }
  } finally {
    observer.disconnect();
    close();
  }
}

/**
 * Returns the size of a terminal that comes in the place of this element. A shell that begins with it does not draw its prompt again when
 * the terminal is shown: bash then deletes the first output of a command that was typed before.
 */
export function terminalSizeAt(place: HTMLElement): api.TerminalSize {
  const element = document.createElement('div');
  element.className = 'terminal-screen';
  place.before(element);
  const { terminal: { cols, rows }, close } = fill(element);
  close();
  element.remove();
  return { cols, rows };
}

/** Opens a terminal that is as large as the element. */
function fill(element: HTMLElement, screenReaderMode = false) {
  const terminal = new Terminal({
    cursorBlink: !matchMedia('(prefers-reduced-motion: reduce)').matches,
    fontFamily: getComputedStyle(element).fontFamily,
    fontSize: 13,
    screenReaderMode,
    minimumContrastRatio: 4.5,
    theme: { background: '#101113', foreground: '#e6e6e9' },
  });
  const addon = new FitAddon();
  terminal.loadAddon(addon);
  const undo = makeStylesStrict();
  terminal.open(element);
  addon.fit();
  const close = () => {
    terminal.dispose();
    undo();
  };
  return { terminal, fit: () => addon.fit(), close };
}

/** What is sent to an attachment fails only after its output has ended. That is handled where the output is read. */
function notAttached(): void {}

/** The output on the screen. */
class Output {
  /** True while output is drawn that was there before. What it asks the terminal was answered then, if a terminal was attached. */
  isRepeated = false;
  #answered: number;
  readonly #terminal: Terminal;

  /** The output before the offset `answered` is repeated. */
  constructor(terminal: Terminal, answered: number) {
    this.#terminal = terminal;
    this.#answered = answered;
  }

  /** Draws the output until it ends. A hidden page draws slowly, and the command must not wait for it, so it leaves at the next output. */
  async draw(attachment: Attachment): Promise<void> {
    let drawn = Promise.resolve();
    for await (const part of attachment) {
      drawn = this.#drawPart(part);
      if (document.hidden) break;
      await drawn;
      this.#answered = Math.max(this.#answered, part.offset + part.bytes.length);
    }
    await drawn;
  }

  async #drawPart({ offset, bytes }: OutputPart): Promise<void> {
    const repeated = Math.min(bytes.length, Math.max(0, this.#answered - offset));
    this.isRepeated = true;
    await this.#write(bytes.subarray(0, repeated));
    this.isRepeated = false;
    await this.#write(bytes.subarray(repeated));
  }

  async #write(bytes: Uint8Array): Promise<void> {
    await new Promise<void>((resolve) => this.#terminal.write(bytes, resolve));
  }
}

/** Resolves when the page is visible. Rejects with the signal's reason if the signal fires. */
async function untilVisible(signal: AbortSignal): Promise<void> {
  if (!document.hidden) return;
  signal.throwIfAborted();
  await new Promise<void>((resolve, reject) => {
    document.addEventListener('visibilitychange', () => resolve(), { once: true, signal });
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
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
