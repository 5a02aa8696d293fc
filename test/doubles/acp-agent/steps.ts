import type { AgentStep } from '../../contracts/agent-script.ts';

/**
 * What the scripted agent does in a turn, besides what every scripted agent does.
 *
 * - `flood` with `bytes`: chunks of so many characters.
 * - `raw`: written to standard output as it is, so often.
 * - `update`: a session update as it is; `notify`: a notification as it is.
 * - `request`: asks the client, and then says `answered: <result or error as JSON>`.
 * - `stderr`: written to standard error.
 * - `write`: writes a file, relative to the session's directory, as a tool call with its diff; `read`: says what is in one.
 * - `run`: runs a shell command in the session's directory.
 * - `env`: says the value of a variable of its environment, or `unset`.
 * - `after`: done when the turn has been answered.
 * - `error`: the turn is answered with this error; `answer`: with this result.
 * - `objects`: says `stalling.`, and answers the turn with an error when it is cancelled.
 * - `deaf`: reads its standard input no more.
 */
export type AcpStep =
  | AgentStep
  | { readonly flood: number; readonly bytes: number }
  | { readonly raw: string; readonly times?: number }
  | { readonly update: Readonly<Record<string, unknown>> }
  | { readonly notify: { readonly method: string; readonly params: unknown } }
  | { readonly request: { readonly method: string; readonly params: unknown } }
  | { readonly stderr: string }
  | { readonly write: { readonly path: string; readonly text: string } }
  | { readonly read: string }
  | { readonly run: string }
  | { readonly env: string }
  | { readonly after: readonly AcpStep[] }
  | { readonly error: { readonly code: number; readonly message: string; readonly data?: unknown } }
  | { readonly answer: unknown }
  | { readonly objects: true }
  | { readonly deaf: true };

/** The text of a message that makes the scripted agent do this. */
export function acpScript(...steps: readonly AcpStep[]): string {
  return JSON.stringify({ steps });
}

/** What the text tells; one that is no script is answered with `heard: <text>`. */
export function acpStepsOf(text: string): readonly AcpStep[] {
  if (!text.startsWith('{"steps":')) return [{ say: `heard: ${text}` }];
  return (JSON.parse(text) as { readonly steps: readonly AcpStep[] }).steps;
}
