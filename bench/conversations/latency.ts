import { client, methods, ndJsonStream, PROTOCOL_VERSION } from '@agentclientprotocol/sdk';
import { acpAgentCommand, startAgentProcess } from '../../test/doubles/acp-agent/start.ts';
import { type Figure, inMs, percentile, spread } from '../figure.ts';
import { startBenchServer } from './client.ts';

const rounds = 300;
const warmUp = 20;

/** Measures the time from a message to the agent's first event on the stream, against a bare ACP client on the same agent, in turn. */
export async function* benchLatency(): AsyncGenerator<Figure> {
  await using server = await startBenchServer();
  const bare = await startBare();
  const times = { skep: [] as number[], bare: [] as number[] };
  try {
    const id = await server.conversation();
    const events = server.events(id);
    // The stream is open when its first event arrives.
    const opened = events.next();
    await server.send(id, 'hello');
    await opened;
    await untilKind(events, 'turn_ended');
    for (let round = -warmUp; round < rounds; round += 1) {
      const begun = performance.now();
      const sent = server.send(id, 'hello');
      await untilKind(events, 'message_chunk');
      const skepMs = performance.now() - begun;
      await sent;
      await untilKind(events, 'turn_ended');
      const bareMs = await bare.ask();
      if (round < 0) continue;
      times.skep.push(skepMs);
      times.bare.push(bareMs);
    }
    await events.return(undefined);
  } finally {
    await bare.close();
  }
  const more = (percent: number, most: number): Figure => {
    const ms = percentile(times.skep, percent) - percentile(times.bare, percent);
    return {
      name: `message in to first agent event out, p${percent}, more than bare ACP`,
      measured: `${inMs(ms)} more: ${spread(times.skep)}`,
      reference: `${spread(times.bare)}: a bare ACP client`,
      ratio: null,
      bound: `<= ${most} ms`,
      ok: ms <= most,
      note: `${rounds} rounds, in turn; HTTP, store and stream included`,
    };
  };
  yield more(50, 5);
  yield more(99, 15);
}

async function untilKind(events: AsyncGenerator<{ readonly kind: string }>, kind: string): Promise<void> {
  for (;;) {
    const { value, done } = await events.next();
    if (done === true) throw new Error('the stream ended');
    if (value.kind === kind) return;
  }
}

/** The peer: the SDK's client alone. */
async function startBare() {
  const agent = startAgentProcess(acpAgentCommand());
  let first: (() => void) | null = null;
  const connection = client()
    .onNotification(methods.client.session.update, () => first?.())
    .connect(ndJsonStream(agent.streams.stdin, agent.streams.stdout));
  await connection.agent.request(methods.agent.initialize, { protocolVersion: PROTOCOL_VERSION, clientCapabilities: {} });
  const { sessionId } = await connection.agent.request(methods.agent.session.new, { cwd: '/', mcpServers: [] });
  return {
    /** Milliseconds from the prompt to the first update. */
    async ask(): Promise<number> {
      const { promise, resolve } = Promise.withResolvers<void>();
      first = resolve;
      const begun = performance.now();
      const turn = connection.agent.request(methods.agent.session.prompt, { sessionId, prompt: [{ type: 'text', text: 'hello' }] });
      await promise;
      const ms = performance.now() - begun;
      await turn;
      return ms;
    },
    async close(): Promise<void> {
      connection.close();
      agent.kill();
      await agent.gone;
    },
  };
}
