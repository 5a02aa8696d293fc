import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { modelScript } from '../../doubles/model/index.ts';
import { object } from '../../support/client.ts';
import { toolCallsIn, messageOf, startConversation, answersIn, type ConversationClient } from '../../support/conversation.ts';
import { describeWithOpenCode, openCodeEnv } from '../../support/opencode.ts';
import { until } from '../../support/until.ts';
import { followed } from './followed.ts';
import { createScene, modelKey, type Scene } from './scene.ts';
import { edits, handedOver, isOver, stall, writes } from './script.ts';

const run = promisify(execFile);

describeWithOpenCode('OpenCode in the process runtime', (binary) => {
  let scene: Scene;
  let talk: ConversationClient;
  let work: string;

  const git = async (...args: string[]): Promise<string> => (await run('git', ['-C', work, ...args])).stdout;

  beforeAll(async () => {
    scene = await createScene({
      config: (model) => {
        const agent = { protocol: 'acp', command: [binary, 'acp'], env: openCodeEnv({ modelUrl: model.url }), secrets: ['MODEL_API_KEY'] };
        return { specs: [{ id: 'opencode', command: ['sh', '-c', 'while :; do sleep 1000; done'], agent }] };
      },
    });
  });
  afterAll(() => scene?.close());

  test('becomes READY step by step, and edits a file of the repository', async () => {
    const request = { selected_repository: 'acme/shop', selected_branch: 'feature', permission_policy: 'allow', initial_message: messageOf(modelScript(...edits('README.md', 'tea', 'coffee'), { text: 'It sells coffee now.' })) };
    talk = await startConversation(() => scene.call, request);
    await talk.ready();
    const turn = await talk.turn();
    expect(turn.stopReason).toBe('end_turn');
    expect(answersIn(turn)).toEqual(['It sells coffee now.']);

    const steps = (await talk.events()).flatMap(({ kind, data }) => (kind === 'start_step' ? [data['to']] : []));
    expect(steps).toEqual(['WORKING', 'WAITING_FOR_SANDBOX', 'PREPARING_REPOSITORY', 'LISTING_MICROAGENTS', 'STARTING_AGENT', 'READY']);
    work = join(scene.dataDir, 'sandboxes', await talk.sandboxId(), 'workspace');
    expect(await git('status', '--porcelain')).toBe(' M README.md\n');
    expect(await git('diff', '--unified=0')).toMatch(/-The shop sells tea\.\n\+The shop sells coffee\./);
    expect((await git('branch', '--show-current')).trim()).toBe('feature');
    expect(toolCallsIn(turn)).toContainEqual(expect.objectContaining({ tool_kind: 'edit', status: 'completed', paths: [expect.stringMatching(/README\.md$/)] }));

    const [request0] = handedOver(scene.model);
    expect(request0?.text).toContain('.skep/microagents/deploy.md');
    expect(request0?.authorization).toBe(`Bearer ${modelKey}`);
    expect(await talk.now()).toMatchObject({ execution_status: 'idle', sandbox_status: 'RUNNING', git_provider: 'local' });
  });

  test('has the same events in the stream as in the list, each once', async () => {
    const all = await talk.events();
    const ids = async (count: number, after?: number): Promise<number[]> => (await followed(scene.server.url, `${talk.path}/events/stream`, count, after)).map(({ id }) => id);
    const cut = all[Math.floor(all.length / 2)]?.id ?? 0;
    expect(await ids(all.length)).toEqual(all.map(({ id }) => id));
    const rest = all.filter(({ id }) => id > cut).map(({ id }) => id);
    expect(await ids(rest.length, cut)).toEqual(rest);
  });

  test('fails a turn with the error message of its model, and runs the next turn', async () => {
    const failed = await talk.turn(await talk.say(modelScript({ status: 400, message: 'your account has no credit' })));
    expect(failed.stopReason).toBe('failed');
    expect(await talk.now()).toMatchObject({ execution_status: 'error', status_reason: { code: 'agent_error', message: expect.stringContaining('your account has no credit') } });
    const next = await talk.turn(await talk.say(modelScript({ text: 'fine again' })));
    expect([next.stopReason, answersIn(next)]).toEqual(['end_turn', ['fine again']]);
    expect(await talk.now()).toMatchObject({ execution_status: 'idle', status_detail: null, status_reason: null });
  });

  test('ends a stalled turn if it is cancelled', async () => {
    const message = await stall(talk);
    expect(await talk.now()).toMatchObject({ execution_status: 'running' });
    await talk.post('/cancel');
    expect((await talk.turn(message)).stopReason).toBe('cancelled');
    expect(await talk.now()).toMatchObject({ execution_status: 'idle' });
  });

  test('continues with the same agent if a message resumes its frozen sandbox', async () => {
    const sandbox = `/api/v1/sandboxes/${await talk.sandboxId()}`;
    const frozen = await scene.call('POST', `${sandbox}/pause`, { pause_kind: 'freeze' });
    expect(object(frozen)).toMatchObject({ status: 'PAUSED', pause_kind: 'freeze' });
    const turn = await talk.turn(await talk.say(modelScript({ text: 'awake' })));
    expect([turn.stopReason, answersIn(turn)]).toEqual(['end_turn', ['awake']]);
    expect(object(await scene.call('GET', sandbox))['status']).toBe('RUNNING');
    expect((await talk.events()).filter(({ kind }) => kind === 'agent_started')).toHaveLength(1);
  });

  test('continues its turn and its agent after kill -9 of Skep', async () => {
    const message = await stall(talk);
    await scene.crash();
    expect(await talk.now()).toMatchObject({ execution_status: 'running' });
    await talk.post('/cancel');
    expect((await talk.turn(message)).stopReason).toBe('cancelled');
    const turn = await talk.turn(await talk.say(modelScript({ text: 'here I am again' })));
    expect([turn.stopReason, answersIn(turn)]).toEqual(['end_turn', ['here I am again']]);
    const started = (await talk.events()).filter(({ kind }) => kind === 'agent_started');
    expect(started).toHaveLength(1);
    expect(handedOver(scene.model).at(-1)?.remembered).toContain('It sells coffee now.');
    expect(await git('status', '--porcelain')).toBe(' M README.md\n');
  });

  test('loads its session from its home folder after its sandbox was stopped', async () => {
    const sandbox = `/api/v1/sandboxes/${await talk.sandboxId()}`;
    expect((await scene.call('POST', `${sandbox}/pause`, { pause_kind: 'stop' })).status).toBe(200);
    const turn = await talk.turn(await talk.say(modelScript({ text: 'back again' })));
    expect([turn.stopReason, answersIn(turn)]).toEqual(['end_turn', ['back again']]);
    const started = (await talk.events()).filter(({ kind }) => kind === 'agent_started');
    expect(started.map(({ data }) => data['loaded'])).toEqual([false, true]);
    expect(handedOver(scene.model).at(-1)?.remembered).toContain('It sells coffee now.');
    expect(await git('status', '--porcelain')).toBe(' M README.md\n');
  });

  test('performs an allowed action, and not a denied one', async () => {
    const asking = await startConversation(() => scene.call, { selected_repository: 'acme/shop', permission_policy: 'ask' });
    await asking.ready();
    for (const [kind, name, stands] of [['allow_once', 'granted.txt', 'completed'], ['reject_once', 'denied.txt', 'failed']] as const) {
      const message = await asking.say(modelScript(...writes(name, `${name}\n`), { text: 'so be it' }));
      const asked = await asking.event('permission_requested', () => true, await asking.event('turn_started', ({ data }) => data['message_id'] === message).then(({ id }) => id));
      expect(await asking.now()).toMatchObject({ execution_status: 'waiting_for_permission' });
      const options = asked.data['options'] as { readonly option_id: string; readonly kind: string }[];
      const option = options.find((each) => each.kind === kind)?.option_id;
      await asking.post(`/permissions/${String(asked.data['permission_id'])}`, { option_id: option });
      const turn = await asking.turn(message);
      expect(turn.stopReason).toBe('end_turn');
      expect(turn.events).toContainEqual(expect.objectContaining({ kind: 'permission_answered', actor: 'user', data: { permission_id: asked.data['permission_id'], option_id: option } }));
      expect(toolCallsIn(turn)).toContainEqual(expect.objectContaining({ tool_kind: 'edit', status: stands }));
    }
    work = join(scene.dataDir, 'sandboxes', await asking.sandboxId(), 'workspace');
    expect(await git('status', '--porcelain')).toBe('?? granted.txt\n');
    expect((await git('branch', '--show-current')).trim()).toBe('main');
  });

  test('leaves no process behind after its conversation is deleted', async () => {
    const sandbox = `/api/v1/sandboxes/${await talk.sandboxId()}`;
    expect((await scene.call('DELETE', talk.path)).status).toBe(204);
    await until(async () => (await scene.call('GET', sandbox)).status, (status) => status === 404, 60_000);
    await until(() => isOver(scene.dataDir, sandbox), Boolean, 60_000);
  });
});
