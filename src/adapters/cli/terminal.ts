import { clearLine, createInterface, cursorTo, type Interface } from 'node:readline';
import type { Screen } from './transcript.ts';

export interface TerminalOptions {
  readonly input: NodeJS.ReadableStream;
  readonly output: NodeJS.WritableStream;
  /** Is there a person who types, and sees what is typed? */
  readonly interactive: boolean;
  readonly colored: boolean;
}

export interface TerminalEvents {
  line(text: string): void;
  /** The input has ended. */
  end(): void;
  /** Control-C. */
  interrupt(): void;
}

/** Lines that come in, and text that goes out; what a person is typing stays below it. */
export class Terminal implements Screen {
  readonly interactive: boolean;
  readonly colored: boolean;
  readonly #output: NodeJS.WritableStream;
  readonly #lines: Interface;
  #asks = false;
  #isShown = false;

  constructor({ input, output, interactive, colored }: TerminalOptions, events: TerminalEvents) {
    this.interactive = interactive;
    this.colored = colored;
    this.#output = output;
    this.#lines = createInterface({ input, output, terminal: interactive, prompt: '> ' });
    this.#lines.on('line', (line) => {
      this.#isShown = false;
      events.line(line);
      this.#show();
    });
    this.#lines.on('close', () => events.end());
    this.#lines.on('SIGINT', () => events.interrupt());
  }

  write(text: string): void {
    this.#clear();
    this.#output.write(text);
    if (text.endsWith('\n')) this.#show();
  }

  /** From now on a person is shown where to type. */
  ask(): void {
    this.#asks = true;
    this.#show();
  }

  close(): void {
    this.#asks = false;
    this.#clear();
    this.#lines.close();
  }

  #clear(): void {
    if (!this.#isShown) return;
    cursorTo(this.#output, 0);
    clearLine(this.#output, 0);
    this.#isShown = false;
  }

  #show(): void {
    if (!this.interactive || !this.#asks || this.#isShown) return;
    this.#lines.prompt(true);
    this.#isShown = true;
  }
}
