import type { AcpStep } from './steps.ts';

/**
 * The options of the agent, as JSON in its first argument or in the variable `SKEP_ACP_AGENT`.
 *
 * - `speaks`, `forgets` (offers no `session/load`), `refuses`, `ends`, `silent`, `other_version`: see the contract of agent protocols.
 * - `wants_key`: requires authentication, and accepts the method `model-api-key` if `MODEL_API_KEY` is set. Its other method
 *   never answers.
 * - `babbles`: writes lines that are not messages, without end, and does nothing else.
 */
export interface AcpAgentOptions {
  readonly behaviour?: 'speaks' | 'forgets' | 'refuses' | 'ends' | 'silent' | 'other_version' | 'wants_key' | 'babbles';
  /**
   * How it continues an earlier session. `load`, the default: by `session/load`. `load_late`: like `load`, but it returns after the first
   * update of the history, and sends the others later. `resume`: only by `session/resume`, although it also offers `session/load`.
   */
  readonly continues?: 'load' | 'load_late' | 'resume';
  /** The folder of its sessions. Without one, it finds no earlier session. */
  readonly sessions?: string;
  /** The steps for a message with this text. Messages can also be scripts themselves. */
  readonly scripts?: Readonly<Record<string, readonly AcpStep[]>>;
  /** Written to standard output before anything else. */
  readonly preamble?: string;
}

export function readOptions(): AcpAgentOptions {
  return JSON.parse(process.argv[2] ?? process.env['SKEP_ACP_AGENT'] ?? '{}') as AcpAgentOptions;
}
