import { isFailure } from '../domain/failure.ts';

/**
 * A start-up error in words for a person. An error that was foreseen has a message that says what to do and is told as
 * it is; of any other, the stack is told too.
 */
export function explain(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (isFailure(error) || foreseen.has(error.name)) return error.message;
  const { code, syscall } = error as NodeJS.ErrnoException;
  if (syscall === 'listen' && code === 'EADDRINUSE') return 'The address is in use by another program; set SKEP_PORT to another port (0 takes any that is free).';
  if (syscall === 'listen') return `It can't listen there (${code ?? error.message}); set SKEP_HOST and SKEP_PORT.`;
  return error.stack ?? error.message;
}

const foreseen: ReadonlySet<string> = new Set(['ConfigError', 'StoreRefused', 'ApiKeyRefused', 'DeploymentFileDamaged', 'ClientError']);
