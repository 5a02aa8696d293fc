import { RequestError } from '@agentclientprotocol/sdk';
import { ZodError } from 'zod';
import { failureData } from './answers.ts';
import { words } from './text.ts';

const authRequired = -32_000;

export function asksForAuthentication(error: unknown): boolean {
  return error instanceof RequestError && error.code === authRequired;
}

/** What the agent said of a failure, for a person. */
export function wordsOf(error: unknown): string {
  if (error instanceof ZodError) return "its answer is not of the protocol's form";
  if (!(error instanceof RequestError)) return error instanceof Error ? words(error.message) : 'it failed';
  const { data } = failureData.safeParse(error.data);
  const message = words(error.message);
  if (data === undefined || data === '' || message.includes(words(data))) return message === '' ? `error ${error.code}` : message;
  return message === '' ? words(data) : `${message}: ${words(data)}`;
}
