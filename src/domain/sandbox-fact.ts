import type { ExposedUrl } from './sandbox.ts';

/**
 * What a runtime finds of a sandbox.
 *
 * - `absent`: nothing.
 * - `created`: made, never run.
 * - `running`: its processes run.
 * - `frozen`: its processes exist and are held.
 * - `stopped`: no process runs; the files are there.
 */
export interface SandboxFact {
  readonly id: string;
  readonly state: 'absent' | 'created' | 'running' | 'frozen' | 'stopped';
  /** Known while it runs or is frozen. */
  readonly exposedUrls: readonly ExposedUrl[];
  /** How it ended or why it could not begin, in words: `exited with code 3`. */
  readonly detail: string | null;
  /**
   * Of a stopped one: did it end because somebody or something outside of it ended it (its engine was restarted, a person
   * stopped it), so that it may be run again over its files? A crash is not that.
   */
  readonly endedFromOutside: boolean;
}

/** The fact of a sandbox of which there is nothing. */
export function absent(id: string, detail: string | null = null): SandboxFact {
  return { id, state: 'absent', exposedUrls: [], detail, endedFromOutside: false };
}
