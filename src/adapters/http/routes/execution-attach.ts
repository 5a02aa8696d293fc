import { z } from 'zod';
import { flag, wholeNumber } from '../common-schemas.ts';
import { ExecutionWebSocket } from '../execution-web-socket.ts';
import { operation } from '../operation.ts';
import type { RequestContext } from '../request-context.ts';
import { defaultHeartbeatMs } from '../send-stream.ts';
import { requireWebSocket } from '../web-socket.ts';
import { ticketQuery } from './events.ts';

const maxOffset = 999_999_999_999_999;

/** A query parameter that is an offset in bytes. */
export const offset = (description: string) => wholeNumber(0, maxOffset).optional().describe(description);

export const holdQuery = flag(
  'While output is followed: the command waits while this client is behind, as for the reader of a pipe, so no output is dropped. Works ' +
  'only on the server that started the command, and not with a key that can only read. Default: the command never waits.',
);

const attachQuery = z.object({
  after: offset('The offset of the first byte of standard output. Default: what is kept, and of a terminal the last screenfuls.'),
  after_stderr: offset('The same for standard error.'),
  takeover: flag("Take the writer's place."),
  hold: holdQuery,
  window: wholeNumber(65_536, 1 << 30).optional().describe(
    'The server sends at most about this many bytes that the client has not confirmed with `{"read": bytes}`, and confirms input with ' +
    '`{"passed": bytes}`. For clients whose WebSocket can not stop reading; they send at most 1 MiB of input that is not passed on. ' +
    'Default: no limit.',
  ),
  ticket: ticketQuery,
});

export const attachOperation = operation('get', '/api/v1/sandboxes/{id}/executions/{execution_id}/attach', {
  tag: 'Executions',
  operationId: 'attach_to_execution',
  summary: 'Attach to an execution by a WebSocket',
  description:
    'Binary messages are input and output bytes. Text messages are control messages in JSON, which a client may ignore: ' +
    '`{"stream", "offset"}` comes when the following bytes are of another stream, `{"writer"}` says whether your input is accepted, and ' +
    'the last one has `status` and `exit_code`. You can send `{"resize": {"cols", "rows"}}`, `{"signal"}`, `{"close_input": true}` and ' +
    '`{"read": bytes}`. Many clients can be attached; only one of them can write.',
  query: attachQuery,
  takesTicket: true,
  success: { status: 101, description: 'The WebSocket.' },
  failures: [
    'sandbox_not_found', 'execution_not_found', 'sandbox_not_running', 'output_dropped', 'upgrade_required', 'origin_forbidden',
    'runtime_unavailable', 'runtime_timeout',
  ],
  handle: async (context, { params, query }) => await openAttachment(context, params.id, params.execution_id, query),
});

async function openAttachment(
  context: RequestContext, sandboxId: string, executionId: string,
  query: z.output<typeof attachQuery>,
): Promise<void> {
  const { skep, principal, mayWrite, http } = context;
  const upgrade = requireWebSocket(context);
  const { tty } = await skep.executions.get(principal, sandboxId, executionId);
  const ends = context.openStream();
  const hold = mayWrite && query.hold === true;
  const read = (stream: 'stdout' | 'stderr', after = null as number | null) =>
    skep.executions.output(principal, sandboxId, executionId, { stream, after, follow: true, hold }, ends);
  const outputs = { stdout: await read('stdout', query.after), ...(!tty && { stderr: await read('stderr', query.after_stderr) }) };
  const attachment = {
    executions: skep.executions, writers: http.writers, principal, sandboxId, executionId, outputs, ends, mayWrite,
    takeover: query.takeover ?? false, windowBytes: query.window ?? Infinity, closeCode: () => (http.ending.aborted ? 1001 : 1008),
    heartbeatMs: http.options.heartbeatMs ?? defaultHeartbeatMs,
  };
  upgrade((socket) => void new ExecutionWebSocket(socket, attachment).serve());
}
