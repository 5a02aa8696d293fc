import { type Command, InvalidArgumentError } from 'commander';
import { durationUnits, parseQuantity, sizeUnits } from '../../client/quantities.ts';

// Parsers of option values. Each throws an error that says what it expects.

export function toDuration(text: string): number {
  return requireValid(parseQuantity(text, durationUnits), 'a duration, for example 12h or 30d');
}

/** Parses a duration, or a number of seconds. */
export function toSeconds(text: string): number {
  return /^\d+$/.test(text) ? Number(text) : Math.ceil(toDuration(text) / 1000);
}

function toSize(text: string): number {
  return requireValid(parseQuantity(text, sizeUnits), 'a size, for example 512MiB or 2GiB');
}

export function toCount(text: string): number {
  return requireValid(/^\d{1,9}$/.test(text) ? Number(text) : null, 'a whole number');
}

function toPositiveNumber(text: string): number {
  return requireValid(/^\d+(\.\d+)?$/.test(text) && Number(text) > 0 ? Number(text) : null, 'a number above 0, for example 2 or 0.5');
}

export function addPair(text: string, earlier: Readonly<Record<string, string>> = {}): Readonly<Record<string, string>> {
  const at = text.indexOf('=');
  if (at < 1) throw new InvalidArgumentError('Expected KEY=VALUE.');
  return { ...earlier, [text.slice(0, at)]: text.slice(at + 1) };
}

export const variableHelp = 'a variable as NAME=VALUE, or NAME with the value that it has here, if it is set; may be repeated';

/** Parses NAME=VALUE. NAME alone means a variable of this process. If it is not set, none is added, as `docker` does. */
export function addVariable(text: string, earlier: Readonly<Record<string, string>> = {}): Readonly<Record<string, string>> {
  if (text === '' || text.includes('=')) return addPair(text, earlier);
  const value = process.env[text];
  return value === undefined ? earlier : { ...earlier, [text]: value };
}

function addText(text: string, earlier: readonly string[] = []): readonly string[] {
  return [...earlier, text];
}

function requireValid<T>(value: T | null, form: string): T {
  if (value === null) throw new InvalidArgumentError(`Expected ${form}.`);
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
    .option('--env <variable>', variableHelp, addVariable)
    .option('--metadata <key=value>', 'a key and a value to find it by; may be repeated', addPair)
    .option('--timeout <duration>', 'the time until it is deleted, for example 1h', toDuration)
    .option('--secret <name>', "a variable of the server's environment for its command, if the spec allows it; may be repeated", addText)
    .option('--cpus <number>', 'a number of CPUs, at most that of the spec', toPositiveNumber)
    .option('--memory <size>', 'its memory, at most that of the spec, for example 512MiB', toSize);
}

/** What the commands call the fields of requests. Fields that no command sets are missing. */
const inputNames: Readonly<Record<string, string>> = {
  'path.id': 'the id',
  'path.execution_id': 'the execution',
  'path.port': 'the port',
  'path.repository_name': 'the repository',
  'query.path': 'the path',
  'query.query': 'the query',
  'query.metadata__eq': '--metadata',
  'body.env': '--env',
  'body.metadata': '--metadata',
  'body.timeout_seconds': '--timeout',
  'body.secrets': '--secret',
  'body.resources': '--cpus or --memory',
  'body.resources.cpus': '--cpus',
  'body.resources.memory_bytes': '--memory',
  'body.sandbox_spec_id': 'the spec',
  'body.user_id': '--user',
  'body.selected_repository': 'the repository',
  'body.selected_branch': '--branch',
  'body.title': 'the title',
  'body.content': 'the message',
  'body.signal': '--signal',
  'body.message_id': 'the message',
  'body.option_id': 'the answer',
  'body.command': 'the command',
  'body.working_dir': '--workdir',
  'body.expires_in_seconds': '--expires',
  'body.branch': '--branch',
  'body.commit_message': '--message',
  'body.pull_request.title': 'the title',
  'body.pull_request.body': '--body',
  'body.pull_request.base': '--base',
};

/** Returns what the user typed for the field of a request, or the name of the field: `--env`, `--env (1A)`. */
export function nameOfInput(location: readonly (string | number)[]): string {
  for (let length = location.length; length > 1; length -= 1) {
    const name = inputNames[location.slice(0, length).join('.')];
    if (name === undefined) continue;
    const [key, ...deeper] = location.slice(length);
    return typeof key === 'string' && deeper.length === 0 ? `${name} (${key})` : name;
  }
  return location.join('.');
}
