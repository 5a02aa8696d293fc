import { z } from 'zod';
import { harmlessLine } from './harmless.ts';

/** Why a server can't be used, in words that say what to do. */
export class ClientError extends Error {
  override readonly name = 'ClientError';
}

const place = z.array(z.union([z.string(), z.number()]));
const problem = z.object({ detail: z.union([z.string(), z.array(z.object({ loc: place, msg: z.string() }))]) });

export function unreachable(url: string, error: unknown): ClientError {
  const cause = error instanceof Error && error.cause instanceof Error && 'code' in error.cause ? ` (${String(error.cause.code)})` : '';
  return new ClientError(`No Skep answers at ${url}${cause}. Start one with \`skep serve\`, or say where it is with --url.`, { cause: error });
}

/** What the server said of a refusal. */
export function refused(status: number, text: string): ClientError {
  const told = problem.safeParse(jsonOf(text));
  if (!told.success) return new ClientError(`It answered with status ${status}; is it a Skep?`);
  const { detail } = told.data;
  return new ClientError(harmlessLine(typeof detail === 'string' ? detail : detail.map(({ loc, msg }) => `${loc.join('.')}: ${msg}`).join('; ')));
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
