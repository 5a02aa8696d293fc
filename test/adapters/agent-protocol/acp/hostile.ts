import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { createAcpProtocol } from '../../../../src/adapters/agent-protocol/acp/index.ts';

const encoder = new TextEncoder();
const long = 'x'.repeat(2 << 20);
const line = (message: object): Uint8Array => encoder.encode(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
const count = { calls: 100, requests: 64, bytes: 1_000_000 };

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;
const heldMiB: Record<string, number> = {};

/** Notes how many MiB are in use. */
function note(what: string): void {
  collect();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  heldMiB[what] = Math.round((heapUsed + arrayBuffers) / 2 ** 20);
}

/** The output of an agent that tries to fill the memory of its client. */
function* output(): Generator<Uint8Array> {
  yield line({ id: 0, result: { protocolVersion: 1 } });
  yield line({ id: 1, result: { sessionId: 's' } });
  for (let call = 0; call < count.calls; call += 1) {
    const update = { sessionUpdate: 'tool_call', toolCallId: `call-${call}`, title: 'A call', kind: long };
    yield line({ method: 'session/update', params: { sessionId: 's', update } });
  }
  note('kinds');
  for (let id = 0; id < count.requests; id += 1) {
    const toolCall = { toolCallId: `asked-${id}`, content: [{ type: 'content', content: { type: 'text', text: long } }] };
    const params = { sessionId: 's', toolCall, options: [{ optionId: 'yes', name: 'Yes', kind: 'allow_once' }] };
    yield line({ id: `request-${id}`, method: 'session/request_permission', params, other: long });
  }
  note('requests');
  // A line without an end, byte by byte.
  for (let byte = 0; byte < count.bytes; byte += 1) yield Uint8Array.of(120);
  note('line');
}

// What the client holds of it, in MiB after a collection, is printed.
let asked = 0;
const client = {
  update: async () => {},
  permission: async () => {
    asked += 1;
    return await new Promise<null>(() => {});
  },
  onUnpromptedWork: () => {},
};
const streams = { stdin: new WritableStream<Uint8Array>(), stdout: ReadableStream.from(output()) };
const request = { streams, workingDir: '/tmp', authMethod: null, sessionId: null, client };
const session = await createAcpProtocol().open(request, AbortSignal.timeout(60_000));
await session.prompt({ content: [{ type: 'text', text: 'go' }] });
console.log(JSON.stringify({ asked, heldMiB }));
