import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createClient as createApi } from '../../../src/client/index.ts';
import { talk as chatWith } from '../../adapters/cli/support.ts';
import { runGit } from '../../contracts/work-tree.ts';
import { acpAgentCommand } from '../../doubles/acp-agent/start.ts';
import { acpScript } from '../../doubles/acp-agent/steps.ts';
import { type Answer, type Json, object } from '../../support/client.ts';
import { startConversation, type ConversationClient } from '../../support/conversation.ts';
import { clearEngine, deploymentOf } from '../../support/deployment.ts';
import { describeWithDocker, images } from '../../support/docker.ts';
import { executable, removeFolder, temporaryFolder } from '../../support/server.ts';
import { until } from '../../support/until.ts';
import { createScene, key, type Scene } from './scene.ts';

const run = promisify(execFile);
const work = [
  'sed -i s/tea/coffee/ README.md',
  "printf 'bin\\000ary' >logo.bin",
  'git mv src/run run',
  "git add -A; git commit -q -m 'Sell coffee'",
  'echo notes >notes.txt; chmod +x notes.txt',
  'rm .skep/microagents/deploy.md',
  'mkdir -p ~/.local/share/agent; echo rows >~/.local/share/agent/database',
].join('; ');

const brief = (file: Json): unknown[] => ['path', 'status', 'committed', 'lines_added', 'lines_removed', 'mode', 'old_path'].map((name) => file[name]);
const expected = [
  ['.skep/microagents/deploy.md', 'deleted', false, 0, 1, null, null],
  ['README.md', 'modified', true, 1, 1, '100644', null],
  ['logo.bin', 'added', true, null, null, '100644', null],
  ['notes.txt', 'added', false, 1, 0, '100755', null],
  ['run', 'renamed', true, 0, 0, '100755', 'src/run'],
];

/** Starts a conversation in which the agent has made changes. */
async function worked(scene: Scene): Promise<ConversationClient> {
  const talk = await startConversation(() => scene.call, { selected_repository: 'acme/shop' });
  await talk.ready();
  // The first message can't be a script, because microagents are added before it.
  await talk.turn(await talk.say('hello'));
  expect((await talk.turn(await talk.say(acpScript({ run: work }, { say: 'done' })))).stopReason).toBe('end_turn');
  return talk;
}

/** Applies the patch to a clone, and returns the resulting tree. */
async function treeOfPatch(scene: Scene, folder: string, answer: Response): Promise<string> {
  expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'text/x-diff; charset=utf-8']);
  const [patch, clone] = [join(folder, 'patch'), join(folder, 'clone')];
  await writeFile(patch, Buffer.from(await answer.arrayBuffer()));
  await run('git', ['clone', '-q', join(scene.folder, 'git/acme/shop.git'), clone]);
  await runGit(clone, ['apply', '--binary', '--index', patch]);
  return await runGit(clone, ['write-tree']);
}

function changesOf(scene: Scene, { path }: ConversationClient, query: string): Promise<Response> {
  return fetch(`${scene.server.url}${path}/changes?${query}`, { headers: { 'X-Session-API-Key': key } });
}

/** Returns the output of the command line client. */
async function skepOutput({ server }: Scene, args: readonly string[]): Promise<string> {
  return (await run(process.execPath, [executable, ...args, '--url', server.url], { env: { ...process.env, SKEP_API_KEY: key } })).stdout;
}

describe('The changes of a conversation', () => {
  let scene: Scene;
  let talk: ConversationClient;
  let folder: string;
  let workTree: string;

  const bytes = (query: string): Promise<Response> => changesOf(scene, talk, query);
  /** Returns the tree of all files of the work tree, without a change of its index. */
  const treeOf = async (): Promise<string> => {
    const env = { ...process.env, GIT_INDEX_FILE: join(folder, 'index') };
    await run('git', ['-C', workTree, 'add', '-A'], { env });
    return (await run('git', ['-C', workTree, 'write-tree'], { env })).stdout.trim();
  };
  const countEvents = async () => object(await scene.call('GET', `${talk.path}/events?kinds=work_tree_changed`))['items'] as Json[];

  beforeAll(async () => {
    folder = await temporaryFolder();
    const agent = { protocol: 'acp', command: acpAgentCommand(), permissions: 'allow' };
    scene = await createScene({ config: () => ({ specs: [{ id: 'scripted', command: ['sh', '-c', 'exec sleep infinity'], agent }] }) });
    talk = await worked(scene);
    workTree = join(scene.dataDir, 'sandboxes', await talk.sandboxId(), 'workspace');
  });
  afterAll(async () => {
    await scene?.close();
    await removeFolder(folder);
  });

  test('are listed as committed and uncommitted changes', async () => {
    const changes = object(await scene.call('GET', `${talk.path}/changes`));
    const head = await runGit(workTree, ['rev-parse', 'HEAD']);
    expect(changes).toMatchObject({ start_commit: await runGit(workTree, ['rev-parse', 'HEAD~1']), start_branch: 'main', head_commit: head, complete: true });
    expect(changes['commits']).toEqual([{ commit: head, author_name: 'default', author_email: 'default@users.noreply.invalid', committed_at: expect.any(String), subject: 'Sell coffee' }]);
    const files = changes['files'] as readonly Json[];
    expect(files.map(brief)).toEqual(expected);
  });

  test('are returned as a patch that gives a clone the same tree', async () => {
    expect(await treeOfPatch(scene, folder, await bytes('format=patch'))).toBe(await treeOf());

    const one = await (await bytes('path=run')).text();
    expect(one).toContain('rename from src/run\nrename to run\n');
    expect(one).not.toContain('README');
    expect(await (await bytes('path=none')).json()).toMatchObject({ status: 404, code: 'file_not_found', path: 'none' });
  });

  test('are pushed to a branch that is updated later, and never overwrite other commits', async () => {
    const bare = join(scene.folder, 'git/acme/shop.git');
    const canary = join(folder, 'canary');
    await mkdir(join(bare, 'hooks'));
    for (const hook of ['pre-receive', 'update', 'post-receive', 'reference-transaction', 'post-update']) {
      await writeFile(join(bare, 'hooks', hook), `#!/bin/sh\ntouch ${canary}\n`, { mode: 0o755 });
    }
    const publish = (body: object = {}): Promise<Answer> => scene.call('POST', `${talk.path}/publish`, body);
    const branch = `skep/${talk.id}`;
    const refused = (code: string, name = branch): object => ({ status: 409, code: 'conversation_publish_refused', branch: name, reason: { code } });
    const [first, second] = await Promise.all([publish({ commit_message: 'All of it' }), publish({ commit_message: 'All of it' })]);
    expect(object(first)).toEqual({ branch, commit: expect.any(String), complete: true, pull_request: null });
    expect(object(second)).toEqual(object(first));
    expect(object(await publish({ commit_message: 'All of it' }))).toEqual(object(first));
    expect(await runGit(bare, ['rev-parse', `${branch}^{tree}`])).toBe(await treeOf());
    expect((await runGit(bare, ['log', '--format=%an %s', `main..${branch}`])).split('\n')).toEqual(['default All of it', 'default Sell coffee']);
    expect(await runGit(bare, ['log', '-1', '--format=%b', branch])).toContain('Co-authored-by: ');

    await talk.turn(await talk.say(acpScript({ run: 'echo more >more.txt' }, { say: 'done' })));
    expect((await publish()).status).toBe(200);
    expect(await runGit(bare, ['rev-parse', `${branch}^{tree}`])).toBe(await treeOf());
    expect((await publish({ branch: 'main' })).body).toMatchObject(refused('default_branch', 'main'));
    expect((await publish({ branch: 'feature' })).body).toMatchObject(refused('branch_moved', 'feature'));
    expect((await publish({ pull_request: { title: 'x' } })).body).toMatchObject({ status: 409, code: 'pull_requests_unsupported' });
    // The next git commands would run the hooks.
    expect(existsSync(canary)).toBe(false);
    await rm(join(bare, 'hooks'), { recursive: true });
    await runGit(bare, ['update-ref', `refs/heads/${branch}`, 'main']);
    expect((await publish()).body).toMatchObject(refused('branch_moved'));
    expect((await publish({ branch: 'other' })).status).toBe(200);
    expect(await runGit(bare, ['rev-parse', branch])).toBe(await runGit(bare, ['rev-parse', 'main']));

    // Kills the server as soon as the branch exists, whether it has recorded the push or not.
    const killed = publish({ branch: 'killed' }).catch(() => null);
    await until(() => runGit(bare, ['for-each-ref', 'refs/heads/killed']), (refs) => refs !== '');
    await scene.crash();
    await killed;
    await writeFile(join(workTree, 'after'), 'after\n');
    expect((await publish({ branch: 'killed' })).status).toBe(200);
    expect(await runGit(bare, ['rev-parse', 'killed^{tree}'])).toBe(await treeOf());
  });

  test('are shown and published by the command line and in a chat', async () => {
    const skep = (...args: string[]): Promise<string> => skepOutput(scene, args);
    expect(await skep('changes', talk.id)).toMatch(/COMMIT +AUTHOR +SUBJECT\n\w{10} +default +Sell coffee\n\n.*renamed +\+0 -0 +yes +src\/run -> run\n/su);
    expect(await skep('changes', talk.id, '--patch')).toContain('+The shop sells coffee.\n');
    expect(await skep('changes', talk.id, '--file', 'notes.txt')).toMatch(/^diff --git a\/notes.txt b\/notes.txt\n/u);
    expect(await skep('publish', talk.id, '--branch', 'by-hand')).toMatch(/^by-hand [0-9a-f]{40}\n$/u);
    const chat = chatWith(createApi({ url: scene.server.url, key }), talk.id);
    chat.type('/diff');
    await chat.sees('+The shop sells coffee.');
    await runGit(join(scene.folder, 'git/acme/shop.git'), ['update-ref', '-d', `refs/heads/skep/${talk.id}`]);
    chat.type('/publish');
    await chat.sees('Pushed ');
    chat.end();
    await chat.done;
  });

  test('cause an event after a turn', async () => {
    expect((await until(countEvents, ({ length }) => length > 0))[0]).toMatchObject({ actor: 'agent', data: { files: 5, lines_added: 2, lines_removed: 2 } });
  });

  test('are available as a list, a patch and a tar from a paused sandbox, which stays PAUSED', async () => {
    const sandbox = `/api/v1/sandboxes/${await talk.sandboxId()}`;
    await writeFile(join(workTree, 'by hand'), 'by hand\n');
    const changes = object(await scene.call('GET', `${talk.path}/changes`));
    const [patch, one] = [await (await bytes('format=patch')).text(), await (await bytes('path=by hand')).text()];
    expect([changes['kept_at'], one]).toEqual([null, expect.stringContaining('+by hand')]);
    for (const kind of ['freeze', 'stop']) {
      expect((await scene.call('POST', `${sandbox}/pause`, { pause_kind: kind })).status).toBe(200);
      const answer = await bytes('format=archive');
      const file = join(folder, `${kind}.tar`);
      await writeFile(file, Buffer.from(await answer.arrayBuffer()));
      expect((await run('tar', ['-xOf', file, 'workspace/notes.txt'])).stdout).toBe('notes\n');
      expect(object(await scene.call('GET', `${talk.path}/changes`))).toEqual({ ...changes, kept_at: expect.any(String) });
      expect([await (await bytes('format=patch')).text(), await (await bytes('path=by hand')).text()]).toEqual([patch, one]);
      expect(object(await scene.call('GET', sandbox))['status']).toBe('PAUSED');
    }
    expect(await skepOutput(scene, ['changes', talk.id])).toContain('by hand\n');
    await scene.call('POST', `${sandbox}/resume`);
  });

  test('stay available after the conversation is archived and its sandbox is deleted', async () => {
    // A new agent process runs, so microagents are added before its first message again.
    await talk.turn(await talk.say('hello'));
    await talk.turn(await talk.say(acpScript({ run: 'echo last >last.txt' }, { say: 'done' })));
    const changes = object(await scene.call('GET', `${talk.path}/changes`));
    const patch = await (await bytes('format=patch')).text();
    const sandbox = `/api/v1/sandboxes/${await talk.sandboxId()}`;
    await scene.call('PATCH', talk.path, { archived: true });
    await until(async () => (await scene.call('GET', sandbox)).status, (status) => status === 404);
    const kept = object(await scene.call('GET', `${talk.path}/changes`));
    expect(kept).toEqual({ ...changes, kept_at: expect.any(String) });
    const commit = await runGit(join(scene.folder, 'git/acme/shop.git'), ['rev-parse', 'killed']);
    expect(kept['published']).toContainEqual({ branch: 'killed', commit, pull_request: null });
    expect(await (await bytes('format=patch')).text()).toBe(patch);
    expect(patch).toContain('+last\n');
    expect(await (await bytes('format=archive')).json()).toMatchObject({ status: 409, reason: { code: 'conversation_archived' } });
  });
});

describeWithDocker('The changes of a conversation in Docker', () => {
  let scene: Scene;
  let folder: string;

  beforeAll(async () => {
    folder = await temporaryFolder();
    const spec = { id: 'plain', image: images.debian, command: ['sleep', 'infinity'] };
    scene = await createScene({ env: { SKEP_SANDBOX_RUNTIME: 'docker' }, config: () => ({ specs: [spec] }) });
  });
  afterAll(async () => {
    await scene?.close((dataDir) => clearEngine(deploymentOf(dataDir)));
    await removeFolder(folder);
  });

  test("match git's own result in the container, and no hook of its configuration runs on the host", async () => {
    const talk = await startConversation(() => scene.call, { selected_repository: 'acme/shop' });
    await talk.ready();
    const sandbox = `/api/v1/sandboxes/${await talk.sandboxId()}`;
    const output = async (shell: string): Promise<unknown> => {
      const execution = `${sandbox}/executions/${String(object(await scene.call('POST', `${sandbox}/executions`, { shell }))['id'])}`;
      await until(async () => object(await scene.call('GET', execution)), ({ status, exit_code: code }) => status === 'exited' && code === 0, 30_000);
      return (await scene.call('GET', `${execution}/output`)).body;
    };
    const canary = join(folder, 'canary');
    const evil = `printf '#!/bin/sh\\nmkdir -p ${folder} && touch ${canary}\\n' >/tmp/evil; chmod +x /tmp/evil; `
      + 'for name in core.fsmonitor core.hooksPath diff.external; do git config $name /tmp/evil; done';
    await output(`${work}; ${evil}`);
    expect((object(await scene.call('GET', `${talk.path}/changes`))['files'] as Json[]).map(brief)).toEqual(expected);
    const tree = await treeOfPatch(scene, folder, await changesOf(scene, talk, 'format=patch'));
    const { branch } = object(await scene.call('POST', `${talk.path}/publish`, {})) as { branch: string };
    expect(await runGit(join(scene.folder, 'git/acme/shop.git'), ['rev-parse', `${branch}^{tree}`])).toBe(tree);
    expect(existsSync(canary)).toBe(false);
    expect(`${tree}\n`).toBe(await output('git config --unset core.fsmonitor; git config --unset core.hooksPath; git add -A; git write-tree'));
  });
});
