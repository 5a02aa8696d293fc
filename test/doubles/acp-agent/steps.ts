import type { AgentStep } from '../../contracts/agent-script.ts';

/**
 * The steps of this agent in a turn, besides the steps of every scripted agent.
 *
 * - `flood` with `bytes`: sends chunks of this many characters.
 * - `raw`: writes the text unchanged to standard output, this many times.
 * - `update`: sends a session update unchanged; `notify`: a notification.
 * - `request`: sends a request to the client, and then says `answered: <result or error as JSON>`.
 * - `stderr`: written to standard error.
 * - `write`: writes a file, relative to the session's directory, as a tool call with its diff; `read`: says what is in one.
 * - `run`: runs a shell command in the session's directory.
 * - `env`: says the value of a variable of its environment, or `unset`.
 * - `error`: ends the turn with this error; `answer`: with this result.
 * - `objects`: says `stalling.`, and ends the turn with an error when it is cancelled.
 * - `deaf`: stops reading its standard input.
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

/** Returns the text of a message that makes the scripted agent run the steps. */
export function acpScript(...steps: readonly AcpStep[]): string {
  return JSON.stringify({ steps });
}

/** Returns the steps of a message. If the text is not a script, the agent says `heard: <text>`. */
export function acpStepsOf(text: string): readonly AcpStep[] {
  if (!text.startsWith('{"steps":')) return [{ say: `heard: ${text}` }];
  return (JSON.parse(text) as { readonly steps: readonly AcpStep[] }).steps;
}
