import { FitAddon } from '@xterm/addon-fit';
import { Terminal } from '@xterm/xterm';
import '@xterm/xterm/css/xterm.css';
import type { Execution } from '../../client/index.ts';
import { toastFailure } from '../ui/actions.ts';
import { makeStylesStrict } from './terminal-styles.ts';

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
