import { type Command, InvalidArgumentError } from 'commander';
import { durationUnits, parseQuantity, sizeUnits } from '../../client/quantities.ts';

// Parsers of option values. Each throws an error that says what it expects.

export function toDuration(text: string): number {
  return requireValid(parseQuantity(text, durationUnits), 'a duration, for example 12h or 30d');
}

function toSize(text: string): number {
  return requireValid(parseQuantity(text, sizeUnits), 'a size, for example 512MiB or 2GiB');
}

function toPositiveNumber(text: string): number {
  return requireValid(/^\d+(\.\d+)?$/.test(text) && Number(text) > 0 ? Number(text) : null, 'a number above 0, for example 2 or 0.5');
}

export function addPair(text: string, earlier: Readonly<Record<string, string>> = {}): Readonly<Record<string, string>> {
  const at = text.indexOf('=');
  if (at < 1) throw new InvalidArgumentError('It takes KEY=VALUE.');
  return { ...earlier, [text.slice(0, at)]: text.slice(at + 1) };
}

function addText(text: string, earlier: readonly string[] = []): readonly string[] {
  return [...earlier, text];
}

function requireValid<T>(value: T | null, form: string): T {
  if (value === null) throw new InvalidArgumentError(`It takes ${form}.`);
  return value;
}

export interface StartOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly metadata?: Readonly<Record<string, string>>;
  /** Milliseconds. */
  readonly timeout?: number;
  readonly secret?: readonly string[];
  readonly cpus?: number;
  /** Bytes. */
  readonly memory?: number;
}

/** Returns the body of a start request. JSON leaves out undefined members. */
export function startBody(spec: string | undefined, { env, metadata, timeout, secret, cpus, memory }: StartOptions) {
  const resources = cpus === undefined && memory === undefined ? undefined : { cpus, memory_bytes: memory };
  const timeoutSeconds = timeout === undefined ? undefined : Math.ceil(timeout / 1000);
  return { sandbox_spec_id: spec, env, metadata, timeout_seconds: timeoutSeconds, resources, secrets: secret };
}

export function addStartOptions(command: Command): Command {
  return command
    .option('--env <name=value>', 'a variable of its command; may be repeated', addPair)
    .option('--metadata <key=value>', 'a text to find it again by; may be repeated', addPair)
    .option('--timeout <duration>', 'the time until it is deleted, for example 1h', toDuration)
    .option('--secret <name>', 'a variable of the server that the spec allows, only for its own command; may be repeated', addText)
    .option('--cpus <number>', 'a number of CPUs, at most that of the spec', toPositiveNumber)
    .option('--memory <size>', 'its memory, at most that of the spec, for example 512MiB', toSize);
}
