import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { createSqliteStore } from '../../src/adapters/store/sqlite/index.ts';
import { createSkep, type Skep } from '../../src/composition/index.ts';
import { readDeploymentFile } from '../../src/composition/config/deployment-file.ts';
import { type Figure, inMs, median, timed } from '../figure.ts';
import { clearUp } from '../engine.ts';

const run = promisify(execFile);
const rounds = 10;
const files = 1000;
const image = 'skep-test/debian';
const owner = 'bench';

/** The smallest agent, as a shell script: it only opens a session. Every image has a shell. */
const agentProgram = `while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\\("[^"]*"\\|[0-9]*\\).*/\\1/p')
  case $line in
    *'"initialize"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":1,"agentCapabilities":{}}}\\n' "$id" ;;
    *'"session/new"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"sessionId":"s"}}\\n' "$id" ;;
  esac
done`;

/** Measures each step from the request to READY, with a warm pool and a known repository, against `docker run` and `git clone`. */
export async function* benchReady(): AsyncGenerator<Figure> {
  const folder = await mkdtemp(join(tmpdir(), 'skep-bench-'));
  const store = await createSqliteStore({ dataDir: join(folder, 'data') });
  try {
    await makeRepository(join(folder, 'repositories/shop'), files);
    const skep = await createSkep({
      dataDir: join(folder, 'data'),
      store,
      git: [{ provider: 'local', root: join(folder, 'repositories') }],
      runtime: { kind: 'docker' },
      specs: [
        {
          id: 'agent',
          image,
          command: ['sleep', '100000'],
          pool: { size: 1 },
          agent: { protocol: 'acp', command: ['sh', '-c', agentProgram], permissions: 'allow' },
        },
      ],
    });
    try {
      const poolFull = async (): Promise<void> => {
        while (!(await store.sandboxes.pooled()).some(({ sandbox }) => sandbox.status === 'RUNNING')) await new Promise((resolve) => setImmediate(resolve));
      };
      const steps = new Map<string, number[]>();
      const totals: number[] = [];
      const plain: number[] = [];
      for (let round = -1; round < rounds; round += 1) {
        await poolFull();
        const times = await startOne(skep);
        const cloned = await timed(() => dockerRunAndClone(join(folder, 'repositories')));
        if (round < 0) continue;
        totals.push([...times.values()].reduce((sum, ms) => sum + ms, 0));
        for (const [step, ms] of times) steps.set(step, [...(steps.get(step) ?? []), ms]);
        plain.push(cloned);
      }
      const note = `a repository of ${files} files; ${rounds} rounds, in turn`;
      const total: Figure = {
        name: 'create to READY, from the pool, the repository known',
        measured: inMs(median(totals)),
        reference: `${inMs(median(plain))}: docker run and git clone`,
        ratio: median(totals) / median(plain),
        bound: null,
        ok: true,
        note,
      };
      const byStep = [...steps].map(([step, times]): Figure => ({
        name: `create to READY: ${step}`,
        measured: inMs(median(times)),
        reference: inMs(median(totals)),
        ratio: median(times) / median(totals),
        bound: null,
        ok: true,
        note: 'reference: the whole',
      }));
      yield total;
      yield* byStep;
    } finally {
      await skep.close();
      await clearUp(readDeploymentFile(join(folder, 'data'))?.id ?? 'none');
    }
  } finally {
    await store.close();
    await rm(folder, { recursive: true, force: true });
  }
}

/** Milliseconds of each step of a start. */
async function startOne(skep: Skep): Promise<ReadonlyMap<string, number>> {
  const asked = { title: null, sandboxId: null, sandboxSpecId: null, selectedRepository: 'shop', selectedBranch: null, initialMessage: null, permissionPolicy: null, patterns: null };
  const { conversation } = await skep.conversations.start(owner, asked);
  const entered: [string, number][] = [];
  const follow = skep.events.follow(owner, { conversationId: conversation.id, kinds: ['start_step'] }, 0, AbortSignal.timeout(60_000));
  for await (const batch of follow) {
    for (const event of batch) if (event.kind === 'start_step') entered.push([event.data.to, event.at]);
    const [last] = entered.at(-1) ?? [];
    if (last === 'ERROR') throw new Error(JSON.stringify((await skep.conversations.get(owner, conversation.id)).conversation.statusReason));
    if (last === 'READY') break;
  }
  await skep.conversations.delete(owner, conversation.id);
  return new Map(entered.slice(0, -1).map(([step, at], index) => [step, (entered[index + 1]?.[1] ?? at) - at]));
}

async function dockerRunAndClone(root: string): Promise<void> {
  const { stdout } = await run('docker', ['run', '-d', '--init', '-v', `${root}:/repositories:ro`, image, 'sleep', '100000']);
  const id = stdout.trim();
  await run('docker', ['exec', id, 'git', '-c', 'safe.directory=*', 'clone', '--quiet', '/repositories/shop', '/workspace']);
  void run('docker', ['rm', '-f', id]);
}

export async function makeRepository(path: string, files: number): Promise<void> {
  await mkdir(path, { recursive: true });
  await run('git', ['init', '--quiet', '--initial-branch=main', path]);
  for (let n = 0; n < files; n += 1) {
    if (n % 50 === 0) await mkdir(join(path, `folder-${n / 50}`));
    await writeFile(join(path, `folder-${Math.floor(n / 50)}/file-${n}.txt`), `The text of file ${n}.\n`.repeat(100));
  }
  await run('git', ['-C', path, 'add', '.']);
  await run('git', ['-C', path, '-c', 'user.name=bench', '-c', 'user.email=bench@example.org', 'commit', '--quiet', '-m', 'All files']);
}
