import assert from 'node:assert/strict';
import { neverAborts } from '../../src/ports/abort-signals.ts';
import type { AgentStreams } from '../../src/ports/agent-protocol.ts';
import { type AgentCase, recordingClient } from './agent-harness.ts';
import { withTimeout } from './contract.ts';
import { scripted } from './agent-script.ts';

/** The streams of an agent, for several holders one after the other. No holder closes them. Each can begin at any offset. */
function shared({ stdin, stdout }: AgentStreams) {
  const input = stdin.getWriter();
  const chunks: Uint8Array[] = [];
  let more = Promise.withResolvers<void>();
  const bytes = { read: 0, written: 0 };
  void (async () => {
    for await (const chunk of stdout) {
      chunks.push(chunk);
      more.resolve();
      more = Promise.withResolvers();
    }
  })();
  async function* from(offset: number): AsyncGenerator<Uint8Array> {
    for (let at = offset; ; ) {
      const rest = Buffer.concat(chunks).subarray(at);
      at += rest.length;
      bytes.read = Math.max(bytes.read, at);
      if (rest.length > 0) yield rest;
      else await more.promise;
    }
  }
  return {
    bytes,
    /** Drops the first bytes of the first written chunk. */
    held: (offset: number, dropped: number): AgentStreams => ({
      stdout: ReadableStream.from(from(offset)),
      stdin: new WritableStream<Uint8Array>({
        async write(chunk) {
          const rest = chunk.subarray(dropped);
          dropped = 0;
          bytes.written += rest.length;
          if (rest.length > 0) await input.write(rest);
        },
      }),
    }),
  };
}

export const resumptionCases: readonly AgentCase[] = [
  [
    "resumes a turn in another process and replays the agent's updates since the turn began",
    async ({ protocol, start, traits }) => {
      if (!traits.resumes) return;
      const agent = await start('speaks');
      const streams = shared(agent.streams);
      const options = [{ optionId: 'yes', name: 'Yes', kind: 'allow_once' as const }];
      const steps = scripted({ say: 'a' }, { ask: { toolCallId: 'call-1', title: 'One', options } }, { say: 'b' });
      const asked = Promise.withResolvers<void>();
      const first = recordingClient({ permission: async () => (asked.resolve(), await new Promise<null>(() => {})) });
      const request = { streams: streams.held(0, 0), workingDir: '/tmp', authMethod: null, sessionId: null, client: first };
      const session = await withTimeout('a session', protocol.open(request, neverAborts));
      const requestId = await withTimeout('the next request of the session', session.nextRequest());
      const began = { ...streams.bytes };
      const prompted = session.prompt(steps);
      await withTimeout('the permission request', asked.promise);
      const handedOver = streams.bytes.written - began.written;
      assert.ok(handedOver > 0);
      await session.close();
      assert.equal((await prompted).stopReason, 'interrupted');

      const second = recordingClient({ permission: async () => 'yes' });
      const resumed = await protocol.resume({ streams: streams.held(began.read, handedOver), client: second, sessionId: session.id, requestId });
      assert.equal(resumed.id, session.id);
      assert.equal((await withTimeout('the turn ends', resumed.prompt(steps))).stopReason, 'end_turn');
      assert.deepEqual(second.updates.slice(0, first.updates.length), first.updates);
      assert.equal(second.said(), 'achosen: yesb');
      agent.kill();
    },
  ],
];
