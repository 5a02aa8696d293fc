import { InvalidArgumentError } from 'commander';
import { parseDuration, parseSize } from '../shared/quantities.ts';

// What the options of commands take. Each throws for anything else, with what is expected.

export function toDuration(text: string): number {
  return known(parseDuration(text), 'a duration, for example 12h or 30d');
}

export function toSize(text: string): number {
  return known(parseSize(text), 'a size, for example 512MiB or 2GiB');
}

export function toPositiveNumber(text: string): number {
  return known(/^\d+(\.\d+)?$/.test(text) && Number(text) > 0 ? Number(text) : null, 'a number above 0, for example 2 or 0.5');
}

/** Adds `KEY=VALUE` to those of an option that is repeated. */
export function addPair(text: string, earlier: Readonly<Record<string, string>> = {}): Readonly<Record<string, string>> {
  const at = text.indexOf('=');
  if (at < 1) throw new InvalidArgumentError('It takes KEY=VALUE.');
  return { ...earlier, [text.slice(0, at)]: text.slice(at + 1) };
}

/** Adds a text to those of an option that is repeated. */
export function addText(text: string, earlier: readonly string[] = []): readonly string[] {
  return [...earlier, text];
}

function known<T>(value: T | null, form: string): T {
  if (value === null) throw new InvalidArgumentError(`It takes ${form}.`);
  return value;
}
