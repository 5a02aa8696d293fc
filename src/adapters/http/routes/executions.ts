import { z } from 'zod';
import { type ExecutionRecord, executionRecordStatuses } from '../../../domain/execution.ts';
import {
  claimOf, flag, idempotencyHeaders, locationHeader, statusFields, statusFieldsOf, text, timestamp, signalName, terminalSize,
} from '../common-schemas.ts';
import { byteStream, noContent, operation, StreamedBody } from '../operation.ts';
import { pageQuery, pageSchema, readPage } from '../page-token.ts';
import { presenter } from '../presenter.ts';
import { takeBody } from '../request-input.ts';
import { variableName } from '../sandbox-parameters.ts';
import { attachOperation, holdQuery, offset } from './execution-attach.ts';

const executionResource = z
  .object({
    id: z.string(),
    sandbox_id: z.string(),
    command: z.array(z.string()),
    stdin: z.boolean().describe('Whether it takes input.'),
    tty: z.boolean().describe('Whether it runs in a terminal.'),
    status: z.enum(executionRecordStatuses)
      .describe('`lost`: the exit code is not known, for example because the sandbox was stopped before the command ended.'),
    ...statusFields,
    exit_code: z.int().nullable()
      .describe('Null unless the status is `exited`. If a signal ended the command, 128 plus the number of the signal.'),
    durable: z.boolean().describe('Whether the command continues, and its output is kept, when the server stops.'),
    stdout_bytes: z.int().describe('How many bytes it has written. In a list, this may be an earlier number.'),
    stderr_bytes: z.int(),
    started_at: timestamp,
    deadline: timestamp.nullable().describe('When it is killed (SIGKILL) if it still runs.'),
    ended_at: timestamp.nullable(),
  })
  .meta({ id: 'Execution', description: 'A command in a sandbox.' });

const word = text(128 * 1024);
const variables = z.record(variableName, word).meta({ example: { CI: '1' } });

const runBody = z
  .strictObject({
    command: z.array(word).min(1).nullish().meta({ description: 'The program and its arguments.', example: ['ls', '-l'] }),
    shell: word.min(1).nullish().describe('A shell command for `/bin/sh -c`, instead of `command`.'),
    env: variables.default({}).describe("Added to the sandbox's own variables, for this command only."),
    working_dir: text(4096).regex(/^\//, 'must be an absolute path').nullable().default(null)
      .describe("Default: the working directory of the sandbox's spec."),
    timeout_seconds: z.int().min(1).max(30 * 86_400).nullable().default(null)
      .describe('After this time the command is killed (SIGKILL), also after a restart of the server.'),
    stdin: z.boolean().optional().describe('Whether the command gets input. Default: true with a terminal, otherwise false.'),
    tty: terminalSize.nullable().default(null).describe('Runs it in a terminal of this size.'),
  })
  .refine(({ command, shell }) => (command == null) !== (shell == null), 'must have either command or shell')
  .meta({ id: 'ExecutionRequest' });

const outputQuery = z.object({
  stream: z.enum(['stdout', 'stderr', 'tty']).default('stdout')
    .meta({ description: 'For a command in a terminal, `tty` and `stdout` are the same.', override: { default: 'stdout' } }),
  after: offset('The offset of the first byte. Default: 0.'),
  follow: flag('Go on until the command has ended.'),
  hold: holdQuery,
});

const inputQuery = z.object({ close: flag('Close the input afterwards.') });

const presentExecution = presenter(executionResource, (execution: ExecutionRecord) =>
  ({ ...execution, ...statusFieldsOf(execution.statusReason) }));

const executions = '/api/v1/sandboxes/{id}/executions';
const one = `${executions}/{execution_id}`;
const runtimeFailures = ['runtime_unavailable', 'runtime_timeout'] as const;
const executionFailures = ['sandbox_not_found', 'execution_not_found', ...runtimeFailures] as const;

const run = operation('post', executions, {
  tag: 'Executions',
  operationId: 'run_execution',
  summary: 'Run a command in a sandbox',
  description: 'Responds when the command has started. The command continues if the connection is lost or the server stops.',
  headers: idempotencyHeaders,
  body: runBody,
  success: { status: 201, description: 'The command has started.', schema: executionResource, headers: locationHeader },
  failures: [
    'sandbox_not_found', 'sandbox_not_running', 'sandbox_busy', 'idempotency_conflict', 'execution_not_found', 'execution_limit_reached',
    ...runtimeFailures,
  ],
  handle: async (context, { params, headers, body }) => {
    const { skep, principal } = context;
    const { command, shell, env, working_dir: workingDir, timeout_seconds: timeout, tty, stdin = tty !== null } = body;
    const execution = await skep.executions.run(principal, params.id, {
      command: command ?? ['/bin/sh', '-c', shell ?? ''], env, workingDir, timeoutMs: timeout === null ? null : timeout * 1000, stdin, tty,
      ...claimOf(headers, principal.userId, 'run_execution', { id: params.id, body }),
    });
    const location = context.link(`/api/v1/sandboxes/${execution.sandboxId}/executions/${execution.id}`);
    context.response.location(location);
    return presentExecution(execution);
  },
});

const list = operation('get', executions, {
  tag: 'Executions',
  operationId: 'list_executions',
  summary: 'List the executions of a sandbox',
  description: 'Newest first. The oldest executions that have ended are deleted over time.',
  query: z.object(pageQuery),
  success: { status: 200, description: 'A page of executions.', schema: pageSchema(executionResource, 'ExecutionPage') },
  failures: ['sandbox_not_found'],
  handle: async (context, { params, query }) => {
    const { skep, principal } = context;
    return await readPage(context, `executions/${params.id}`, query, (page) =>
      skep.executions.list(principal, params.id, page), presentExecution);
  },
});

const get = operation('get', one, {
  tag: 'Executions',
  operationId: 'get_execution',
  summary: 'Get an execution',
  success: { status: 200, description: 'The execution.', schema: executionResource },
  failures: executionFailures,
  handle: async ({ skep, principal }, { params }) =>
    presentExecution(await skep.executions.get(principal, params.id, params.execution_id)),
});

const remove = operation('delete', one, {
  tag: 'Executions',
  operationId: 'delete_execution',
  summary: 'Delete an execution',
  description: 'Kills the command and everything that it started, and deletes its output. Deleting it again within a day succeeds.',
  success: noContent,
  failures: ['sandbox_not_found', 'execution_not_found'],
  handle: async ({ skep, principal }, { params }) => await skep.executions.delete(principal, params.id, params.execution_id),
});

const output = operation('get', `${one}/output`, {
  tag: 'Executions',
  operationId: 'get_execution_output',
  summary: 'Read the output of an execution',
  description: 'Returns the bytes from the offset on. After a lost connection, a client continues from the offset that it has reached.',
  query: outputQuery,
  success: { status: 200, description: 'The bytes.', schema: byteStream, media: 'application/octet-stream' },
  failures: [...executionFailures, 'sandbox_not_running', 'output_dropped'],
  handle: async (context, { params, query }): Promise<StreamedBody> => {
    const { skep, principal, mayWrite } = context;
    const ends = context.openStream();
    const stream = query.stream === 'stderr' ? 'stderr' : 'stdout';
    const hold = mayWrite && query.hold === true;
    const request = { stream, after: query.after ?? 0, follow: query.follow ?? false, hold } as const;
    const { bytes } = await skep.executions.output(principal, params.id, params.execution_id, request, ends);
    return new StreamedBody(bytes, ends);
  },
});

const input = operation('post', `${one}/input`, {
  tag: 'Executions',
  operationId: 'write_execution_input',
  summary: 'Write to the input of an execution',
  description: 'Responds when the command has been given all bytes of the body. This waits while the command does not read.',
  query: inputQuery,
  takesBytes: true,
  success: noContent,
  failures: [...executionFailures, 'sandbox_not_running', 'input_closed'],
  handle: async (context, { params, query }) => {
    const { skep, principal, closed } = context;
    const { id, execution_id: executionId } = params;
    await skep.executions.write(principal, id, executionId, takeBody(context), query.close ?? false, closed);
  },
});

const signal = operation('post', `${one}/signal`, {
  tag: 'Executions',
  operationId: 'signal_execution',
  summary: 'Send a signal to an execution',
  description: 'Sends the signal to its process group. If the execution has ended, nothing happens.',
  body: z.strictObject({ signal: signalName }).meta({ id: 'ExecutionSignal' }),
  success: noContent,
  failures: [...executionFailures, 'sandbox_not_running'],
  handle: async ({ skep, principal }, { params, body }) =>
    await skep.executions.signal(principal, params.id, params.execution_id, body.signal),
});

const resize = operation('post', `${one}/resize`, {
  tag: 'Executions',
  operationId: 'resize_execution',
  summary: "Change the size of an execution's terminal",
  body: terminalSize,
  success: noContent,
  failures: [...executionFailures, 'sandbox_not_running'],
  handle: async ({ skep, principal }, { params, body }) => await skep.executions.resize(principal, params.id, params.execution_id, body),
});

export const executionOperations = [run, list, get, remove, output, input, signal, resize, attachOperation];
