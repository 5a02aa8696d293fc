import type { AcpStep } from './steps.ts';

/**
 * How the agent behaves from its start, as JSON in its first argument or in the variable `SKEP_ACP_AGENT`.
 *
 * - `speaks`, `forgets` (offers no `session/load`), `refuses`, `ends`, `silent`, `other_version`: see the contract of agent protocols.
 * - `wants_key`: asks for authentication, and lets in by the method `model-api-key` where `MODEL_API_KEY` is set. Its other
 *   method never answers.
 * - `babbles`: writes lines that are no message, without end, and does nothing else.
 */
export interface AcpAgentOptions {
  readonly behaviour?: 'speaks' | 'forgets' | 'refuses' | 'ends' | 'silent' | 'other_version' | 'wants_key' | 'babbles';
  /** The folder where it keeps its sessions; without one it finds none again. */
  readonly sessions?: string;
  /** What it does for a message, by its text, besides for messages that are scripts themselves. */
  readonly scripts?: Readonly<Record<string, readonly AcpStep[]>>;
  /** Written to standard output before anything else. */
  readonly preamble?: string;
}

export function readOptions(): AcpAgentOptions {
  return JSON.parse(process.argv[2] ?? process.env['SKEP_ACP_AGENT'] ?? '{}') as AcpAgentOptions;
}
