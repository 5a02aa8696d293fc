import { clearScreenDown, createInterface, cursorTo, type Interface, moveCursor } from 'node:readline';

export interface TerminalOptions {
  readonly input: NodeJS.ReadableStream;
  readonly output: NodeJS.WritableStream;
  /** Whether a person types at a terminal and sees the typed text. */
  readonly interactive: boolean;
}

/** Reads lines and prints text. The line that a person is typing stays below the text. */
export class Terminal {
  readonly interactive: boolean;
  readonly #output: NodeJS.WritableStream;
  readonly #lines: Interface;
  #hasPrompt = false;
  #isPromptShown = false;
  /** True after the end of the input. A closed readline can't show a prompt. */
  #isClosed = false;

  constructor(
    { input, output, interactive }: TerminalOptions,
    events: { readonly line: (text: string) => void; readonly end: () => void; readonly interrupt: () => void },
  ) {
    this.interactive = interactive;
    this.#output = output;
    this.#lines = createInterface({ input, output, terminal: interactive, prompt: '> ' });
    this.#lines.on('line', (line) => {
      this.#isPromptShown = false;
      events.line(line);
      this.#printPrompt();
    });
    this.#lines.on('close', () => {
      this.#clearPrompt();
      this.#isClosed = true;
      events.end();
    });
    this.#lines.on('SIGINT', () => events.interrupt());
    // After Ctrl-Z, readline pauses the input and expects its user to resume it. It shows the prompt itself.
    this.#lines.on('SIGCONT', () => this.#lines.resume());
  }

  write(text: string): void {
    this.#clearPrompt();
    this.#output.write(text);
    if (text.endsWith('\n')) this.#printPrompt();
  }

  showPrompt(): void {
    this.#hasPrompt = true;
    this.#printPrompt();
  }

  close(): void {
    this.#lines.close();
  }

  #clearPrompt(): void {
    if (!this.#isPromptShown) return;
    moveCursor(this.#output, 0, -this.#lines.getCursorPos().rows);
    cursorTo(this.#output, 0);
    clearScreenDown(this.#output);
    this.#isPromptShown = false;
  }

  #printPrompt(): void {
    if (!this.interactive || !this.#hasPrompt || this.#isClosed || this.#isPromptShown) return;
    // Readline draws a long line again from the row where it began.
    this.#output.write('\n'.repeat(this.#lines.getCursorPos().rows));
    this.#lines.prompt(true);
    this.#isPromptShown = true;
  }
}
