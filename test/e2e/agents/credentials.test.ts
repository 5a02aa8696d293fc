import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { cp, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import Docker from 'dockerode';
import { pack } from 'tar-stream';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { acpScript } from '../../doubles/acp-agent/steps.ts';
import { buildScriptedImage, scriptedAgentCommand } from '../../support/agent-image.ts';
import { type Client, object } from '../../support/client.ts';
import { messageOf, startConversation, answersIn, type ConversationClient, type TurnEvents } from '../../support/conversation.ts';
import { clearEngine, deploymentOf } from '../../support/deployment.ts';
import { describeWithDocker } from '../../support/docker.ts';
import { filesBelow, foundIn, tracesOf } from '../../support/search.ts';
import { removeFolder, temporaryFolder } from '../../support/server.ts';
import { until } from '../../support/until.ts';
import { processesIn } from './container.ts';
import { followed } from './followed.ts';
import { startGitHost, type GitHost } from './git-host.ts';
import { createScene, modelKey, shop, type Scene } from './scene.ts';

/** Returns the command lines of all processes on this machine. */
function commandLines(): string[] {
  return readdirSync('/proc').filter((name) => /^\d+$/.test(name)).flatMap((pid) => {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
    } catch {
      // The process has ended meanwhile.
      return [];
    }
  });
}

type Source = AsyncIterable<Uint8Array | string> | Iterable<string>;

const token = `ghp_${randomBytes(18).toString('hex')}`;
const tokenTraces = [...tracesOf(token), ...tracesOf(`x-access-token:${token}`)];
const secrets = [...tokenTraces, ...tracesOf(modelKey)];
const title = 'A talk about tea';

describeWithDocker("The token of the git host and the agent's model key", () => {
  const answers: string[] = [];
  let folder: string;
  let host: GitHost;
  let image: string;
  let scene: Scene;
  let talk: ConversationClient;
  /** The turn in which the agent reports the keys that it can see. */
  let told: TurnEvents;
  let container: Docker.Container;

  /** The processes that ran when the host had received the commits and not yet responded. */
  const whilePushing = { commandLines: [] as string[], inSandbox: [] as Awaited<ReturnType<typeof processesIn>> };

  /** Records the responses. */
  const call: Client = async (...request) => {
    const answer = await scene.call(...request);
    answers.push(JSON.stringify([[...answer.headers], answer.body]));
    return answer;
  };
  const exported = async (): Promise<Source> => (await container.export()) as AsyncIterable<Uint8Array>;
  const inspected = async (): Promise<Source> => {
    const found = await container.inspect();
    const executions = await Promise.all((found.ExecIDs ?? []).map((id) => new Docker().getExec(id).inspect()));
    return [JSON.stringify([found, executions])];
  };

  beforeAll(async () => {
    folder = await temporaryFolder();
    host = await startGitHost(folder, token, shop);
    image = await buildScriptedImage();
    const agent = { protocol: 'acp', command: scriptedAgentCommand({ sessions: '/home/agent/sessions' }), secrets: ['MODEL_API_KEY'] };
    scene = await createScene({
      env: { SKEP_SANDBOX_RUNTIME: 'docker', SKEP_GIT_PROVIDERS: 'github', SKEP_GITHUB_URL: host.url, SKEP_GITHUB_TOKEN: token, SKEP_LOG_LEVEL: 'debug' },
      config: () => ({ specs: [{ id: 'scripted', image, command: ['sleep', 'infinity'], agent }] }),
    });

    // The agent works, reports what it sees, crashes, and is started again.
    talk = await startConversation(() => call, { title, selected_repository: 'acme/shop', initial_message: messageOf('hello') });
    await talk.ready();
    await talk.turn();
    const tells = acpScript({ write: { path: 'notes.txt', text: 'tea' } }, { env: 'MODEL_API_KEY' }, { env: 'SKEP_GITHUB_TOKEN' }, { read: '.git/config' });
    told = await talk.turn(await talk.say(tells));
    await talk.turn(await talk.say(acpScript({ say: 'I fall' }, { crash: true })));
    await talk.turn(await talk.say(acpScript({ env: 'MODEL_API_KEY' }, { fail: 'no luck' })));
    await talk.turn(await talk.say('farewell'));
    container = new Docker().getContainer(`skep_${deploymentOf(scene.dataDir)}_${await talk.sandboxId()}`);
    host.git.interceptor = async ({ method, path }) => {
      if (method !== 'POST' || !path.endsWith('/git-receive-pack')) return false;
      whilePushing.commandLines = commandLines();
      whilePushing.inSandbox = await processesIn(container);
      return false;
    };
    expect(object(await call('POST', `${talk.path}/publish`, { pull_request: { title: 'Notes', body: '' } }))).toMatchObject({ pull_request: { number: 1 } });
  }, 300_000);
  afterAll(async () => {
    await scene?.close((dataDir) => clearEngine(deploymentOf(dataDir)));
    await host?.close();
    await removeFolder(folder);
  });

  test('are used: git requests have an Authorization, and the agent has its key', async () => {
    expect(host.git.requests.some(({ authorization, status }) => authorization !== null && status === 200)).toBe(true);
    expect(host.api.requests.length).toBeGreaterThan(0);
    // The output has the agent's own key, masked, and no other key.
    expect(answersIn(told).join('')).toMatch(/^(?!unset).+unset\[core\]/);
  });

  test('are in no file of the sandbox, and not in docker inspect', async () => {
    // The output of the turns is deleted a moment later.
    const found = await until(async () => foundIn(await exported(), [...secrets, 'The shop sells tea.']), ({ length }) => length < 2, 60_000);
    expect(found).toEqual(['The shop sells tea.']);
    expect(await foundIn(await inspected(), [...secrets, await talk.sandboxId()])).toEqual([await talk.sandboxId()]);
  });

  test("are in no process environment, except the model key in the agent's", async () => {
    const processes = await processesIn(container);
    expect(processes.filter(({ environment }) => environment.includes('SESSION_API_KEY=')).length).toBeGreaterThan(1);
    for (const { command, environment } of processes) {
      expect(await foundIn([environment, command], tokenTraces), command).toEqual([]);
      expect([command, environment.includes(modelKey)]).toEqual([command, command.startsWith('node /opt/acp-agent/main.ts')]);
    }
  });

  test('are in no command line during a push, and nowhere in the sandbox', async () => {
    const { commandLines, inSandbox } = whilePushing;
    expect(await foundIn(commandLines, [...secrets, 'send-pack'])).toEqual(['send-pack']);
    expect(inSandbox.length).toBeGreaterThan(1);
    expect(await foundIn(inSandbox.flatMap(({ command, environment }) => [command, environment]), tokenTraces)).toEqual([]);
  });

  test('are in no file of the deployment, and not in the log', async () => {
    expect(await foundIn(filesBelow(scene.dataDir), [...secrets, title])).toEqual([title]);
    const { stdout, stderr } = scene.server.output();
    expect(await foundIn([stdout, stderr], [...secrets, 'agent started', 'listens on'])).toEqual(['agent started', 'listens on']);
  });

  test('are in no response and in no event', async () => {
    const paths = [
      talk.path, `${talk.path}/events`, '/api/v1/events', '/api/v1/app-conversations', '/api/v1/sandboxes/search', '/api/v1/sandbox-specs/search',
      `/api/v1/sandboxes/${await talk.sandboxId()}`, '/api/user/repository/acme/shop/microagents', '/ready', '/openapi.json',
    ];
    for (const path of paths) expect((await call('GET', path)).status, path).toBe(200);
    const streamed = await followed(scene.server.url, `${talk.path}/events/stream`, (await talk.events()).length);
    expect(await foundIn([...answers, ...streamed.map(({ data }) => data)], [...secrets, title])).toEqual([title]);
  });

  test('are found if they are planted', async () => {
    const basic = Buffer.from(`x-access-token:${token}`).toString('base64');
    const planted = pack();
    planted.entry({ name: 'home/agent/planted' }, `extraheader = Authorization: Basic ${basic}`);
    planted.finalize();
    await container.putArchive(await buffer(planted), { path: '/' });
    expect(await foundIn(await exported(), tokenTraces)).not.toEqual([]);
    await scene.server.stop();
    const copy = join(folder, 'copy');
    await cp(scene.dataDir, copy, { recursive: true });
    expect(await foundIn(filesBelow(copy), [...secrets, title])).toEqual([title]);
    await writeFile(join(copy, 'repositories', 'config'), `url = http://x:${token}@127.0.0.1/`);
    expect(await foundIn(filesBelow(copy), tokenTraces)).toContain(token);
    for (const before of ['', 'a', 'ab']) expect(await foundIn([Buffer.from(`${before}${modelKey}!`).toString('base64')], tracesOf(modelKey))).toHaveLength(1);
    expect(await foundIn([token.slice(0, 9), token.slice(9)], tokenTraces)).toContain(token);
  });
});
