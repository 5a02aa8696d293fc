import { textOfError } from '../../adapters/cli/console.ts';
import { sentenceOfFailure } from '../../adapters/shared/failure-sentences.ts';
import type { StoreRefused } from '../../adapters/store/sqlite/index.ts';
import { isFailure } from '../../domain/failure.ts';
import { ConfigError } from '../config/config-error.ts';
import { storeRefusalText } from '../store-warnings.ts';

/** Returns the message of an expected error, with advice. Returns the stack of any other error. */
export function explain(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (isFailure(error)) return sentenceOfFailure(error);
  if (isStoreRefusal(error)) return storeRefusalText(error);
  if (expected.has(error.name)) return error.message;
  const { code, syscall, address, port } = error as NodeJS.ErrnoException & { readonly address?: string; readonly port?: number };
  const where = port === undefined ? 'there' : `on ${address === undefined ? 'port ' : `${address}:`}${port}`;
  if (syscall === 'listen' || syscall === 'getaddrinfo') return `Can't listen ${where}: ${listenProblem(code ?? error.message)}.`;
  return textOfError(error);
}

/** Compares the name, because the store's module is loaded only by commands that need it. */
function isStoreRefusal(error: Error): error is StoreRefused {
  return error.name === 'StoreRefused';
}

const expected: ReadonlySet<string> = new Set(['ConfigError', 'DeploymentFileDamaged']);

/** Returns the code of an expected error, for programs. Null for any other error. */
export function codeOfError(error: unknown): string | null {
  if (isFailure(error)) return error.code;
  if (error instanceof Error && isStoreRefusal(error)) return error.reason;
  return error instanceof ConfigError ? 'configuration_invalid' : null;
}

const anAddress = 'set SKEP_HOST to an address of this machine (127.0.0.1: only this machine can connect; 0.0.0.0: all addresses)';

const listenProblems: Readonly<Record<string, string>> = {
  EADDRINUSE: 'another program uses this address; set SKEP_PORT, or SKEP_PROXY_PORT for the proxy, to another port '
    + '(0: any free port)',
  EACCES: 'this user may not listen on the port; set SKEP_PORT or SKEP_PROXY_PORT to one above 1023',
  EADDRNOTAVAIL: `this machine has no such address; ${anAddress}`,
  ENOTFOUND: `the host name is not known; ${anAddress}`,
  EAI_AGAIN: `the host name can't be looked up; ${anAddress}`,
};

/** Explains the system's error code for an address, with advice. */
export function listenProblem(code: string): string {
  return listenProblems[code] ?? `the system refuses it (${code}); set SKEP_HOST and SKEP_PORT`;
}
