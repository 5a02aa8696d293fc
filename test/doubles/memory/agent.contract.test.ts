import { describe, test } from 'vitest';
import { createMemoryAgentProtocol, type MemoryTurn } from './index.ts';
import { AgentRefusal, type AgentStreams } from '../../../src/ports/agent-protocol.ts';
import type { TurnStopReason } from '../../../src/domain/agent.ts';
import { agentContract } from '../../contracts/agent.ts';
import type { AgentBehaviour, AgentHarness } from '../../contracts/agent-harness.ts';
import { stepsOf, type AgentStep } from '../../contracts/agent-script.ts';

/** Runs a step as a scripted agent does. */
async function perform(step: AgentStep, turn: MemoryTurn): Promise<TurnStopReason | null> {
  if ('say' in step) await turn.say(step.say, step);
  else if ('tool' in step) await turn.tool(step.tool);
  else if ('plan' in step) await turn.update({ kind: 'plan', entries: step.plan });
  else if ('usage' in step) await turn.update({ kind: 'usage', ...step.usage });
  else if ('flood' in step) for (let index = 0; index < step.flood; index += 1) await turn.say(String(index));
  else if ('ask' in step) {
    await turn.say(`chosen: ${(await turn.ask(step.ask)) ?? 'nothing'}`);
    if (turn.signal.aborted) return 'cancelled';
  } else if ('stall' in step) {
    await turn.say('stalling.');
    await new Promise<void>((resolve) => {
      if (step.stall === 'deaf') return;
      if (turn.signal.aborted) resolve();
      turn.signal.addEventListener('abort', () => resolve(), { once: true });
    });
    return 'cancelled';
  } else if ('after' in step) turn.after((later) => performAll(step.after, later));
  else if ('crash' in step) await turn.crash();
  else if ('fail' in step) throw new Error(step.fail);
  else return step.stop;
  return null;
}

async function script(turn: MemoryTurn): Promise<TurnStopReason> {
  return await performAll(stepsOf(turn.message.content.map(({ text }) => text).join('')), turn);
}

async function performAll(steps: readonly AgentStep[], turn: MemoryTurn): Promise<TurnStopReason> {
  for (const step of steps) {
    const stop = await perform(step, turn);
    if (stop !== null) return stop;
  }
  return 'end_turn';
}

async function createHarness(): Promise<AgentHarness> {
  const behaviours = new Map<AgentStreams, AgentBehaviour>();
  let forgetful = false;
  const options = {
    script,
    async beforeOpen({ streams }: { readonly streams: AgentStreams }) {
      const behaviour = behaviours.get(streams);
      if (behaviour === 'refuses') throw new AgentRefusal({ code: 'agent_session_refused', message: 'no room' });
      if (behaviour === 'other_version') throw new AgentRefusal({ code: 'agent_version_unsupported', offered: 9, supported: 1 });
      if (behaviour === 'silent' || behaviour === 'ends') await new Promise(() => {});
    },
  };
  const [remembering, forgetting] = [createMemoryAgentProtocol(options), createMemoryAgentProtocol({ ...options, remembers: false })];
  return {
    traits: { sessions: 'found_again', resumes: false },
    protocol: { ...remembering, open: (request, signal) => (forgetful ? forgetting : remembering).open(request, signal) },
    async start(behaviour) {
      forgetful = behaviour === 'forgets';
      const { promise: gone, resolve } = Promise.withResolvers<void>();
      const output = new TransformStream<Uint8Array, Uint8Array>();
      const streams = { stdin: new WritableStream<Uint8Array>({ close: resolve }), stdout: output.readable };
      const kill = (): void => void output.writable.close();
      behaviours.set(streams, behaviour);
      if (behaviour === 'ends') kill();
      return { streams, gone, kill };
    },
    close: async () => {},
  };
}

describe('Agent protocol contract: in memory', () => {
  for (const contractCase of agentContract(createHarness)) test(contractCase.name, () => contractCase.run());
});
