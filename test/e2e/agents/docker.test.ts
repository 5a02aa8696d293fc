import Docker from 'dockerode';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { modelScript } from '../../doubles/model/index.ts';
import { buildOpenCodeImage } from '../../support/agent-image.ts';
import { object } from '../../support/client.ts';
import { toolCallsIn, messageOf, startConversation, answersIn, type ConversationClient } from '../../support/conversation.ts';
import { clearEngine, deploymentOf } from '../../support/deployment.ts';
import { describeWithDocker } from '../../support/docker.ts';
import { describeWithOpenCode, openCodeEnv } from '../../support/opencode.ts';
import { until } from '../../support/until.ts';
import { bridgeAddress, outputOf, processesIn } from './container.ts';
import { createScene, modelKey, type Scene } from './scene.ts';
import { edits, handedOver, stall, writes } from './script.ts';

const patience = 90_000;
const inspection = (container: Docker.Container): Promise<number> => container.inspect().then(() => 200, ({ statusCode }: { statusCode: number }) => statusCode);

describeWithDocker('In a Docker sandbox', () => {
  describeWithOpenCode('OpenCode', (binary) => {
    let scene: Scene;
    let image: string;
    let talk: ConversationClient;
    let container: Docker.Container;

    const git = (...args: string[]): Promise<string> => outputOf(container, ['git', ...args]);
    const sandbox = async (): Promise<string> => `/api/v1/sandboxes/${await talk.sandboxId()}`;

    beforeAll(async () => {
      image = await buildOpenCodeImage(binary);
      const address = await bridgeAddress();
      scene = await createScene({
        modelHost: address,
        env: { SKEP_SANDBOX_RUNTIME: 'docker' },
        config: ({ port }) => {
          const env = { ...openCodeEnv({ modelUrl: `http://${address}:${port}/v1` }), HOME: '/home/agent' };
          const agent = { protocol: 'acp', command: ['opencode', 'acp'], env, secrets: ['MODEL_API_KEY'], permissions: 'allow' };
          return { specs: [{ id: 'opencode', image, command: ['sleep', 'infinity'], resources: { memory: '3GiB' }, isolation: { network: 'shared' }, agent }] };
        },
      });
    }, 300_000);
    afterAll(async () => {
      await scene?.close((dataDir) => clearEngine(deploymentOf(dataDir)));
    });

    test('becomes READY, and edits a file of the repository', async () => {
      talk = await startConversation(() => scene.call, { selected_repository: 'acme/shop', initial_message: messageOf(modelScript(...edits('README.md', 'tea', 'coffee'), { text: 'It sells coffee now.' })) });
      await talk.ready();
      const turn = await talk.turn();
      expect([turn.stopReason, answersIn(turn)]).toEqual(['end_turn', ['It sells coffee now.']]);
      expect(toolCallsIn(turn)).toContainEqual(expect.objectContaining({ tool_kind: 'edit', status: 'completed', paths: [expect.stringMatching(/README\.md$/)] }));

      container = new Docker().getContainer(`skep_${deploymentOf(scene.dataDir)}_${await talk.sandboxId()}`);
      expect(await outputOf(container, ['cat', 'README.md'])).toBe('The shop sells coffee.\n');
      expect(await git('status', '--porcelain')).toBe(' M README.md\n');
      expect((await git('branch', '--show-current')).trim()).toBe('main');
      expect(handedOver(scene.model)[0]).toMatchObject({ text: expect.stringContaining('.skep/microagents/deploy.md'), authorization: `Bearer ${modelKey}` });
      const { HostConfig } = await container.inspect();
      expect(HostConfig).toMatchObject({ CapDrop: ['ALL'], SecurityOpt: expect.arrayContaining([expect.stringMatching(/no-new-privileges/)]), Memory: 3 * 2 ** 30 });
      expect(await talk.now()).toMatchObject({ execution_status: 'idle', sandbox_status: 'RUNNING' });
    });

    test('continues its turn and its agent after kill -9 of Skep', async () => {
      const message = await stall(talk);
      await scene.crash();
      expect(await talk.now()).toMatchObject({ execution_status: 'running', sandbox_status: 'RUNNING' });
      await talk.post('/cancel');
      expect((await talk.turn(message)).stopReason).toBe('cancelled');
      const turn = await talk.turn(await talk.say(modelScript(...writes('after.txt', 'later\n'), { text: 'here I am again' })));
      expect([turn.stopReason, answersIn(turn)]).toEqual(['end_turn', ['here I am again']]);
      expect((await talk.events()).filter(({ kind }) => kind === 'agent_started')).toHaveLength(1);
      expect(handedOver(scene.model).at(-1)?.remembered).toContain('It sells coffee now.');
      expect(await git('status', '--porcelain')).toBe(' M README.md\n?? after.txt\n');
      expect(await until(async () => (await processesIn(container)).filter(({ command }) => command.startsWith('opencode acp')).length, (count) => count === 1, patience)).toBe(1);
    });

    test('is interrupted if its container is stopped from outside, and a message resumes it', async () => {
      const message = await stall(talk);
      await container.stop({ t: 5 });
      expect((await talk.turn(message)).stopReason).toBe('interrupted');
      expect(await until(() => talk.now(), ({ sandbox_status: status }) => status === 'PAUSED', patience)).toMatchObject({ execution_status: 'error' });
      const turn = await talk.turn(await talk.say(modelScript({ text: 'and on it goes' })));
      expect([turn.stopReason, answersIn(turn)]).toEqual(['end_turn', ['and on it goes']]);
      const started = (await talk.events()).filter(({ kind }) => kind === 'agent_started');
      expect(started.map(({ data }) => data['loaded'])).toEqual([false, true]);
      expect(new Set(started.map(({ data }) => data['session_id'])).size).toBe(1);
      expect(await git('status', '--porcelain')).toBe(' M README.md\n?? after.txt\n');
      expect(await talk.now()).toMatchObject({ execution_status: 'idle', sandbox_status: 'RUNNING' });
    });

    test('is held during a turn by a freeze, and the turn ends after the resume', async () => {
      const message = await stall(talk);
      const frozen = await scene.call('POST', `${await sandbox()}/pause`, { pause_kind: 'freeze' });
      expect(object(frozen)).toMatchObject({ status: 'PAUSED', pause_kind: 'freeze' });
      expect((await talk.now())['execution_status']).not.toBe('running');
      expect(object(await scene.call('POST', `${await sandbox()}/resume`))['status']).toMatch(/^R/);
      await talk.post('/cancel');
      expect((await talk.turn(message)).stopReason).toBe('cancelled');
      const turn = await talk.turn(await talk.say(modelScript({ text: 'still here' })));
      expect([turn.stopReason, answersIn(turn)]).toEqual(['end_turn', ['still here']]);
      expect((await talk.events()).filter(({ kind }) => kind === 'agent_started')).toHaveLength(2);
    });

    test('leaves no container behind after its conversation is deleted', async () => {
      expect((await scene.call('DELETE', talk.path)).status).toBe(204);
      expect(await until(() => inspection(container), (status) => status === 404, patience)).toBe(404);
    });
  });
});
