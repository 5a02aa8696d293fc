import { setTimeout as delay } from 'node:timers/promises';
import { readOptions } from './options.ts';
import { Sessions, type Session } from './sessions.ts';
import { acpStepsOf, type AcpStep } from './steps.ts';
import { perform } from './turn.ts';
import { listen, write, type Request } from './wire.ts';

/**
 * A scripted coding agent that speaks the Agent Client Protocol: `node main.ts '<options as JSON>'`. It implements the protocol itself,
 * so a mistake of a library is not on both sides.
 */
const { behaviour = 'speaks', continues = 'load', sessions: folder = null, preamble = '', scripts = {} } = readOptions();
const sessions = new Sessions(behaviour === 'forgets' ? null : folder);
const open = new Map<string, Session>();
let letIn = behaviour !== 'wants_key';
let cancel = (): void => {};
let replaying: Promise<void> = Promise.resolve();

const authMethods = [
  { id: 'browser', name: 'Log in with a browser', description: `Run agent login,\n${' then wait'.repeat(100)}` },
  { id: 'model-api-key', name: 'Use MODEL_API_KEY' },
];

async function answer({ method, params, answer }: Request): Promise<void> {
  const unknown = { error: { code: -32_602, message: 'Invalid params', data: { message: 'no such session' } } };
  switch (method) {
    case 'initialize':
      return await answer({
        result: {
          protocolVersion: behaviour === 'other_version' ? 9 : 1,
          agentCapabilities: { loadSession: behaviour !== 'forgets', sessionCapabilities: continues === 'resume' ? { resume: {} } : {} },
          authMethods: behaviour === 'wants_key' ? authMethods : [],
        },
      });
    case 'authenticate':
      // There is never a browser.
      if (params['methodId'] === 'browser') return;
      letIn = process.env['MODEL_API_KEY'] !== undefined;
      return await answer(letIn ? { result: {} } : { error: { code: -32_000, message: 'MODEL_API_KEY is not set' } });
    case 'session/new': {
      if (!letIn) return await answer({ error: { code: -32_000, message: 'Authentication required' } });
      if (behaviour === 'refuses') return await answer({ error: { code: -32_603, message: 'Internal error', data: { details: 'no room' } } });
      const session = sessions.create(String(params['cwd']));
      open.set(session.id, session);
      return await answer({ result: { sessionId: session.id, modes: null } });
    }
    case 'session/load':
    case 'session/resume': {
      const session = sessions.find(String(params['sessionId']), String(params['cwd']));
      if (session === null || (continues === 'resume') !== (method === 'session/resume')) return await answer(unknown);
      open.set(session.id, session);
      const history = continues === 'resume' ? [] : sessions.history(session);
      for (const update of continues === 'load_late' ? history.splice(0, 1) : history.splice(0)) await session.update(update);
      await answer({ result: null });
      replaying = replayLate(session, history);
      return await replaying;
    }
    case 'session/prompt': {
      const session = open.get(String(params['sessionId']));
      if (session === undefined) return await answer(unknown);
      await replaying;
      return await turn(session, params['prompt'] as { readonly text: string }[], answer);
    }
    default:
      return await answer({ error: { code: -32_601, message: 'Method not found' } });
  }
}

async function replayLate(session: Session, history: readonly Readonly<Record<string, unknown>>[]): Promise<void> {
  for (const update of history) {
    await delay(100);
    await session.update(update);
  }
}

async function turn(session: Session, prompt: readonly { readonly text: string }[], answer: Request['answer']): Promise<void> {
  let isCancelled = false;
  const { promise: cancelled, resolve } = Promise.withResolvers<void>();
  cancel = () => {
    isCancelled = true;
    resolve();
  };
  const text = prompt.map((block) => block.text).join('');
  session.remember({ sessionUpdate: 'user_message_chunk', content: { type: 'text', text } });
  session.remember({ sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: `an old answer to ${text}` } });
  session.remember({ sessionUpdate: 'tool_call', toolCallId: 'old-call', title: 'An old call', status: 'completed' });
  const late: AcpStep[] = [];
  let answered: Parameters<Request['answer']>[0] = { result: { stopReason: 'end_turn' } };
  for (const step of scripts[text] ?? acpStepsOf(text)) {
    if ('after' in step) {
      late.push(...step.after);
      continue;
    }
    const end = await perform(step, { session, cancelled, isCancelled: () => isCancelled });
    if (end === null) continue;
    answered = end;
    break;
  }
  await answer(answered);
  for (const step of late) await perform(step, { session, cancelled, isCancelled: () => isCancelled });
}

await write(preamble);
if (behaviour === 'ends') process.exit(3);
listen(
  // If its script is wrong, it ends like a real agent that crashes.
  (request) => {
    if (behaviour !== 'silent') void answer(request);
  },
  (method) => {
    if (method === 'session/cancel') cancel();
  },
);
if (behaviour === 'babbles') for (;;) await write('starting up, please wait\n');
