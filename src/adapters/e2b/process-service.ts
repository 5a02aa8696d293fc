import { hash } from 'node:crypto';
import { z } from 'zod';
import type { ExecutionRecord } from '../../domain/execution.ts';
import { isFailureOf } from '../../domain/failure.ts';
import { sentenceOf } from '../shared/failure-sentences.ts';
import { callOf, ConnectError, inputOf, type Service, type ServiceCall, streamOf } from './connect-protocol.ts';

const bytes = z.base64().transform((text) => Buffer.from(text, 'base64'));
const size = z.object({ size: z.object({ cols: z.int().min(1).max(10_000), rows: z.int().min(1).max(10_000) }) });
const selected = z.object({ process: z.object({ pid: z.int().optional(), tag: z.string().optional() }) });

type Selected = z.output<typeof selected>;

const signal = z
  .enum(['SIGNAL_SIGTERM', 'SIGNAL_SIGKILL'])
  .transform((name) => (name === 'SIGNAL_SIGKILL' ? 'SIGKILL' : 'SIGTERM'));

const startMessage = z.object({
  process: z.object({
    cmd: z.string(), args: z.array(z.string()).default([]), envs: z.record(z.string(), z.string()).default({}), cwd: z.string().default(''),
  }),
  pty: size.optional(),
  stdin: z.boolean().default(true),
});

/**
 * Returns the process id that E2B's clients use for an execution. It is derived from the execution's id, so it is the same on every server.
 * It is not the process id in the sandbox.
 */
function pidOf({ id }: Pick<ExecutionRecord, 'id'>): number {
  return (hash('sha256', id, 'buffer').readUInt32BE() >>> 1) + 1;
}

const pageSize = 100;

async function listAll({ skep, caller, sandboxId }: ServiceCall): Promise<ExecutionRecord[]> {
  const all: ExecutionRecord[] = [];
  let after = null;
  do {
    const page = await skep.executions.list(caller, sandboxId, { after, limit: pageSize });
    all.push(...page.items);
    after = page.next;
  } while (after !== null);
  return all;
}

async function find(call: ServiceCall, { process: { pid } }: Selected): Promise<ExecutionRecord> {
  if (pid === undefined) throw new ConnectError('unimplemented', 'Skep has no tags for processes. Use the pid of the process.');
  const found = (await listAll(call)).find((execution) => pidOf(execution) === pid);
  if (found === undefined) throw new ConnectError('not_found', `There is no process with the pid ${pid}.`);
  return found;
}

async function findRunning(call: ServiceCall, message: Selected): Promise<ExecutionRecord> {
  const found = await find(call, message);
  const execution = await call.skep.executions.get(call.caller, call.sandboxId, found.id);
  if (execution.status !== 'running') throw new ConnectError('not_found', `The process with the pid ${pidOf(found)} has ended.`);
  return execution;
}

/** Runs a command. Reports its output and its end. The command keeps running if the client leaves. */
async function* start(call: ServiceCall, { process, pty, stdin }: z.output<typeof startMessage>): AsyncGenerator<object, void> {
  const { cmd, args, envs, cwd } = process;
  const { skep, caller, sandboxId, templateId, timeoutMs } = call;
  const env = { ...envs, E2B_SANDBOX: 'true', E2B_SANDBOX_ID: sandboxId, E2B_TEMPLATE_ID: templateId };
  const workingDir = cwd === '' ? null : call.resolve(cwd);
  const execution = await skep.executions.run(caller, sandboxId, {
    command: [cmd, ...args], env, workingDir, timeoutMs, stdin: stdin || pty !== undefined, tty: pty?.size ?? null,
  });
  yield* follow(call, execution, workingDir);
}

/**
 * Throws `invalid_argument` if the directory does not exist, or is outside of the sandbox. E2B checks this before the start, which would
 * take twice as long here.
 */
async function requireDirectory({ skep, caller, sandboxId, ends }: ServiceCall, path: string): Promise<void> {
  const found = await skep.files.stat(caller, sandboxId, path, true, ends).catch((error: unknown) => {
    if (!isFailureOf(error, 'file_not_found', 'invalid_request')) throw error;
  });
  if (found?.type !== 'directory') throw new ConnectError('invalid_argument', `The working directory ${path} does not exist.`);
}

/** The exit code of a command that could not be run. */
const notRunCode = 126;

/** Reports the kept output of a command, its further output, and its end. */
async function* follow(call: ServiceCall, execution: ExecutionRecord, workingDir: string | null = null): AsyncGenerator<object, void> {
  const { skep, caller, sandboxId, ends } = call;
  const { id, tty } = execution;
  yield { event: { start: { pid: pidOf(execution) } } };
  const open = async (stream: 'stdout' | 'stderr'): Promise<ReadableStream<Uint8Array>> =>
    (await skep.executions.output(caller, sandboxId, id, { stream, after: null, follow: true, hold: true }, ends)).bytes;
  try {
    const stdout = await open('stdout');
    const outputs = tty ? { pty: stdout } : { stdout, stderr: await open('stderr') };
    for await (const data of merged(outputs)) yield { event: { data } };
  } catch (error) {
    // While a sandbox is being removed, its runtime reports other errors. Throws `sandbox_not_found`.
    await skep.sandboxes.get(caller, sandboxId);
    throw error;
  }
  const { status, exitCode, statusReason } = await skep.executions.get(caller, sandboxId, id);
  if (statusReason?.code === 'execution_timed_out') throw new ConnectError('deadline_exceeded', sentenceOf(statusReason));
  if (status !== 'exited') throw new ConnectError('unavailable', statusReason === null ? 'It is lost.' : sentenceOf(statusReason));
  if (exitCode === notRunCode && workingDir !== null) await requireDirectory(call, workingDir);
  const text = `exit status ${exitCode}`;
  yield { event: { end: { exitCode: exitCode ?? 0, exited: true, status: text, ...(exitCode !== 0 && { error: text }) } } };
}

/** Merges the streams. Each part is under the name of its stream. No stream is read faster than the result. */
function merged(streams: Readonly<Record<string, ReadableStream<Uint8Array>>>): ReadableStream<object> {
  const { readable, writable } = new TransformStream<object, object>();
  const writer = writable.getWriter();
  const copy = async (name: string, stream: ReadableStream<Uint8Array>): Promise<void> => {
    for await (const chunk of stream) await writer.write({ [name]: Buffer.from(chunk).toString('base64') });
  };
  Promise.all(Object.entries(streams).map(([name, stream]) => copy(name, stream)))
    .then(() => writer.close())
    .catch((error: unknown) => writer.abort(error))
    .catch(() => {});
  return readable;
}

async function list(call: ServiceCall): Promise<object> {
  const running = (await listAll(call)).filter(({ status }) => status === 'running');
  const processes = running.map((execution) => {
    const [cmd = '', ...args] = execution.command;
    return { pid: pidOf(execution), config: { cmd, args, envs: {} } };
  });
  return { processes };
}

async function write(call: ServiceCall, message: Selected, chunk: Buffer | undefined, close: boolean): Promise<object> {
  const { id } = await findRunning(call, message);
  const content = ReadableStream.from<Uint8Array>(chunk === undefined ? [] : [chunk]);
  await call.skep.executions.write(call.caller, call.sandboxId, id, content, close, call.ends);
  return {};
}

const input = z.object({ stdin: bytes.optional(), pty: bytes.optional() });
const inputEvent = z.object({ start: selected.optional(), data: z.object({ input }).optional() });

/** Writes the data of the messages as they arrive. The first message names the process. The input stays open. */
async function writeStream(call: ServiceCall, messages: AsyncGenerator<z.output<typeof inputEvent>, void>): Promise<object> {
  const first = await messages.next();
  const process = first.done === true ? undefined : first.value.start;
  if (process === undefined) throw new ConnectError('invalid_argument', 'The first message must be the start event.');
  const { id } = await findRunning(call, process);
  const content = async function* content(): AsyncGenerator<Uint8Array, void> {
    for await (const { data } of messages) yield data?.input.stdin ?? data?.input.pty ?? Buffer.alloc(0);
  };
  await call.skep.executions.write(call.caller, call.sandboxId, id, ReadableStream.from(content()), false, call.ends);
  return {};
}

/** E2B's `process.Process`, over the executions of a sandbox. Source: E2B's `process.proto`. */
export const processService: Service = {
  Start: streamOf(startMessage, start),
  Connect: streamOf(selected, async function* connect(call, message) {
    // Also works for a command that has ended, as long as it is kept. A client that reconnects still gets its output and its end.
    yield* follow(call, await find(call, message));
  }),
  List: callOf(z.object({}), list),
  Update: callOf(selected.extend({ pty: size.optional() }), async (call, message) => {
    const { id } = await findRunning(call, message);
    if (message.pty !== undefined) await call.skep.executions.resize(call.caller, call.sandboxId, id, message.pty.size);
    return {};
  }),
  SendInput: callOf(selected.extend({ input }), async (call, message) =>
    write(call, message, message.input.stdin ?? message.input.pty, false)),
  StreamInput: inputOf(inputEvent, writeStream),
  CloseStdin: callOf(selected, async (call, message) => write(call, message, undefined, true)),
  SendSignal: callOf(selected.extend({ signal }), async (call, message) => {
    const { id } = await findRunning(call, message);
    await call.skep.executions.signal(call.caller, call.sandboxId, id, message.signal);
    return {};
  }),
};
