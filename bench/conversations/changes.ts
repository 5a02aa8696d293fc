import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { readDeploymentFile } from '../../src/composition/config/deployment-file.ts';
import { createSkep, type Skep } from '../../src/composition/index.ts';
import { neverAborts } from '../../src/ports/abort-signals.ts';
import { clearUp } from '../engine.ts';
import { boundedFigure, type Figure, inMs, median, timed } from '../figure.ts';
import { makeRepository } from './ready.ts';

const run = promisify(execFile);
const rounds = 9;
const files = 10_000;
const changed = 100;
const owner = 'bench';
const identity = '-c user.name=bench -c user.email=bench@example.org';

/** Measures the changes of a large work tree against git's own commands in the same container, and publishing them against git by hand. */
export async function* benchChanges(): AsyncGenerator<Figure> {
  const folder = await mkdtemp(join(tmpdir(), 'skep-bench-'));
  const repository = join(folder, 'repositories/shop');
  try {
    await makeRepository(repository, files);
    const skep = await createSkep({
      dataDir: join(folder, 'data'),
      git: [{ provider: 'local', root: join(folder, 'repositories') }],
      runtime: { kind: 'docker' },
      specs: [{ id: 'plain', image: 'skep-test/debian', command: ['sleep', '100000'] }],
    });
    const deployment = readDeploymentFile(join(folder, 'data'))?.id ?? 'none';
    try {
      const { id, sandboxId } = await startWork(skep);
      const container = `skep_${deployment}_${sandboxId}`;
      const inside = async (script: string): Promise<unknown> => await run('docker', ['exec', '-w', '/workspace', container, 'sh', '-ec', script]);
      const change = (round: number): Promise<unknown> =>
        inside(`for n in $(seq 0 ${changed - 1}); do echo "round ${round}" >>folder-$((n * 2))/file-$((n * 100)).txt; done`);
      const times = { list: [] as number[], git: [] as number[], publish: [] as number[], byHand: [] as number[] };
      await inside(`git config --global --add safe.directory '*'; git init -q --bare /tmp/host.git; git status --porcelain`);
      for (let round = -1; round < rounds; round += 1) {
        await change(round);
        const list = await timed(() => skep.conversations.changes(owner, id, neverAborts));
        const git = await timed(() => inside('git status --porcelain >/dev/null; git diff HEAD >/dev/null'));
        const publish = await timed(() => skep.conversations.publish(owner, id, { branch: null, commitMessage: null, patterns: null, pullRequest: null }, neverAborts));
        const byHand = await timed(() => inside(`git add -A; git ${identity} commit -qm work; git push -q -f /tmp/host.git HEAD:work; git reset -q --soft HEAD~1; git reset -q`));
        if (round < 0) continue;
        for (const [name, ms] of Object.entries({ list, git, publish, byHand })) times[name as keyof typeof times].push(ms);
      }
      const figure = (name: string, ours: readonly number[], theirs: readonly number[], what: string, atMost: number): Figure =>
        boundedFigure({
          name, measured: inMs(median(ours)), reference: `${inMs(median(theirs))}: ${what}`,
          note: `${files} files, ${changed} changed; ${rounds} rounds, in turn`,
        }, median(ours) / median(theirs), { atMost });
      yield figure('the list of changes', times.list, times.git, 'docker exec of git status and git diff', 1.3);
      yield figure('publishing', times.publish, times.byHand, 'docker exec of git add, commit and push', 1.5);
    } finally {
      await skep.close();
      await clearUp(deployment);
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function startWork(skep: Skep): Promise<{ readonly id: string; readonly sandboxId: string }> {
  const asked = { title: null, sandboxId: null, sandboxSpecId: null, selectedRepository: 'shop', selectedBranch: null, initialMessage: null, permissionPolicy: null, patterns: null };
  const { conversation: { id, sandboxId } } = await skep.conversations.start(owner, asked);
  for (;;) {
    const { conversation: { startStatus, statusReason } } = await skep.conversations.get(owner, id);
    if (startStatus === 'READY') return { id, sandboxId };
    if (startStatus === 'ERROR') throw new Error(JSON.stringify(statusReason));
    await new Promise((resolve) => void setTimeout(resolve, 20));
  }
}
