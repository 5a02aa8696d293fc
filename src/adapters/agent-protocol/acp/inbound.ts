import { methods, type AnyMessage } from '@agentclientprotocol/sdk';
import { hear } from './envelope.ts';
import type { Intake } from './intake.ts';
import { linesOf } from './lines.ts';
import type { Listener } from './listener.ts';
import { words } from './text.ts';

export interface InboundLimits {
  /** Of one line. */
  readonly lineBytes: number;
  /** Lines in a row that are no message of the protocol. */
  readonly rubbishLines: number;
}

/** The other side says too much that is not the protocol. */
export class Rubbish extends Error {}

/**
 * The messages of the agent that the SDK deals with: requests, and answers to what was asked. Updates never reach it: they are
 * taken here, in order, and nothing is read on meanwhile, so that an agent is held back and an answer is
 * passed on only after what was said before it. Nor does what is not the protocol, of which the SDK would write to the console.
 */
export async function* inbound(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  listener: Listener,
  intake: Intake,
  limits: InboundLimits,
): AsyncGenerator<AnyMessage> {
  const rubbish = new RubbishCount(limits.rubbishLines);
  for await (const line of linesOf(reader, limits.lineBytes)) {
    const heard = hear(line);
    switch (heard.kind) {
      case 'rubbish':
        rubbish.count(line);
        continue;
      case 'notification':
        if (heard.method === methods.client.session.update && !(await listener.update(heard.params))) {
          rubbish.count(line);
          continue;
        }
        if (heard.method === methods.protocol.cancelRequest) yield heard.message;
        break;
      case 'request':
        await intake.enter();
        if (heard.method === methods.client.session.requestPermission) await listener.announce(heard.params);
        yield heard.message;
        break;
      case 'response': {
        const method = intake.answered(heard.id);
        if (method === methods.agent.session.prompt) listener.end();
        if (method !== null) yield heard.message;
        break;
      }
    }
    rubbish.forget();
  }
}

class RubbishCount {
  readonly #max: number;
  #lines = 0;
  #first = '';

  constructor(max: number) {
    this.#max = max;
  }

  count(line: string): void {
    if (this.#lines === 0) this.#first = line;
    this.#lines += 1;
    if (this.#lines > this.#max) throw new Rubbish(`its output is not the protocol's: more than ${this.#max} lines in a row, the first "${words(this.#first.slice(0, 200))}"`);
  }

  forget(): void {
    this.#lines = 0;
  }
}
