import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createOwnEngine, describeWithOwnEngine, type OwnEngine } from '../../adapters/sandbox-runtime/docker/own-engine.ts';
import { acpScript } from '../../doubles/acp-agent/steps.ts';
import { buildScriptedImage, scriptedAgentCommand } from '../../support/agent-image.ts';
import { messageOf, startConversation, answersIn, type ConversationClient } from '../../support/conversation.ts';
import { until } from '../../support/until.ts';
import { createScene, type Scene } from './scene.ts';

const run = promisify(execFile);
const patience = 90_000;

describeWithOwnEngine('A turn during an engine restart', () => {
  let engine: OwnEngine;
  let scene: Scene;
  let talk: ConversationClient;

  beforeAll(async () => {
    const image = await buildScriptedImage();
    engine = await createOwnEngine();
    await run('sh', ['-c', `docker save ${image} | docker -H ${engine.host} load`], { timeout: 120_000 });
    // The agent stores its sessions, and needs no network.
    const agent = { protocol: 'acp', command: scriptedAgentCommand({ sessions: '/home/agent/sessions' }) };
    scene = await createScene({
      env: { SKEP_SANDBOX_RUNTIME: 'docker', SKEP_DOCKER_HOST: engine.host },
      config: () => ({ specs: [{ id: 'scripted', image, command: ['sleep', 'infinity'], agent }] }),
    });
    talk = await startConversation(() => scene.call, { selected_repository: 'acme/shop', initial_message: messageOf('hello') });
    await talk.ready();
    await talk.turn();
    await talk.turn(await talk.say(acpScript({ write: { path: 'notes.txt', text: 'before' } })));
  }, 300_000);
  afterAll(async () => {
    // The end of the engine removes its containers.
    await scene?.close(() => {});
    await engine?.close();
  });

  const stalls = async (): Promise<string> => {
    const message = await talk.say(acpScript({ stall: 'heeds' }));
    const { id } = await talk.event('turn_started', ({ data }) => data['message_id'] === message);
    await talk.event('message_chunk', ({ data }) => data['text'] === 'stalling.', id);
    return message;
  };
  const agents = async () => (await talk.events()).filter(({ kind }) => kind === 'agent_started').map(({ data }) => data);

  test("is interrupted, and the next message resumes the sandbox and the agent's session", async () => {
    const message = await stalls();
    await engine.stop('SIGTERM');
    await engine.start();
    expect((await talk.turn(message)).stopReason).toBe('interrupted');
    expect((await talk.now())['execution_status']).toBe('error');
    await until(() => talk.now(), ({ sandbox_status: status }) => status === 'PAUSED', patience);
    const turn = await talk.turn(await talk.say(acpScript({ read: 'notes.txt' })));
    expect([turn.stopReason, answersIn(turn)]).toEqual(['end_turn', ['before']]);
    expect((await agents()).map(({ loaded }) => loaded)).toEqual([false, true]);
  });

  test('is interrupted by kill -9 of the engine, and a message sent meanwhile runs after the restart', async () => {
    const message = await stalls();
    await engine.stop('SIGKILL');
    const waiting = await talk.say('are you there?');
    await engine.start();
    expect((await talk.turn(message)).stopReason).toBe('interrupted');
    const turn = await talk.turn(waiting);
    expect([turn.stopReason, answersIn(turn)]).toEqual(['end_turn', ['heard: are you there?']]);
    const told = await agents();
    expect(told.map(({ loaded }) => loaded)).toEqual([false, true, true]);
    expect(new Set(told.map(({ session_id: session }) => session)).size).toBe(1);
    expect(await talk.now()).toMatchObject({ execution_status: 'idle', sandbox_status: 'RUNNING' });
  });

  test('continues if the containers outlive the engine', async () => {
    await engine.stop('SIGTERM');
    await engine.start('--live-restore');
    // The dot: a letter could be the first one of the sandbox's random key, and would be held back until the next text.
    const message = await talk.say(acpScript({ say: 'one.' }, { run: 'until [ -e /tmp/go ]; do sleep 0.1; done' }, { say: 'two' }));
    await talk.event('message_chunk', ({ data }) => data['text'] === 'one.');
    await engine.stop('SIGKILL');
    await engine.start('--live-restore');
    const sandbox = await talk.sandboxId();
    const touch = () => scene.call('POST', `/api/v1/sandboxes/${sandbox}/executions`, { command: ['touch', '/tmp/go'] });
    await until(touch, ({ status }) => status === 201, patience);
    const turn = await talk.turn(message);
    expect([turn.stopReason, answersIn(turn)]).toEqual(['end_turn', ['one.two']]);
  });
});
