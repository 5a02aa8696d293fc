import type { Execution } from './openapi.ts';

export type OutputStream = 'stdout' | 'stderr';

export type ExecutionEnd = Pick<Execution, 'status' | 'exit_code' | 'status_detail'>;

/** Bytes of an output. A terminal has only `stdout`. */
export interface OutputPart {
  readonly stream: OutputStream;
  /** Of the first byte. */
  readonly offset: number;
  readonly bytes: Uint8Array;
}

/** A control message of the server. There may be other kinds. */
export type Control = Partial<ExecutionEnd> & {
  readonly stream?: OutputStream;
  readonly offset?: number;
  readonly writer?: boolean;
  readonly passed?: number;
  readonly input_closed?: true;
  readonly error?: { readonly code: string; readonly detail: string; readonly oldest?: number };
};
