// Starts programs while this process has no free file descriptor, and prints the failure of each.
import { closeSync, openSync } from 'node:fs';
import { request } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { createGitRunner } from '../../../src/adapters/shared/git-process.ts';
import { SshAgent } from '../../../src/adapters/sandbox-runtime/docker/ssh-connection.ts';
import { spawnCommand } from '../../../src/adapters/sandbox-runtime/process/child-execution.ts';
import { neverAborts } from '../../../src/ports/abort-signals.ts';

const opened: number[] = [];

function openAll(): void {
  for (;;) {
    try {
      opened.push(openSync('/dev/null', 'r'));
    } catch {
      return;
    }
  }
}

const summary = (error: unknown): string => {
  const { code, cause } = error as { readonly code: string; readonly cause?: { readonly code: string } };
  return cause === undefined ? code : `${code}, ${cause.code}`;
};
const failureOf = (work: Promise<unknown>): Promise<string> => work.then(() => 'no failure', summary);

const command = { args: ['--version'], folder: '/' };
const git = createGitRunner({ binary: 'git', provider: 'local-git' });
const agent = new SshAgent({ host: '127.0.0.1', user: '', port: '' }, {});

openAll();
const lines = [
  await failureOf(git.run(command, neverAborts)),
  await failureOf(buffer(git.stream(command, neverAborts, () => {}))),
  await failureOf(new Promise((resolve, reject) => request({ agent }, resolve).on('error', reject).end())),
  await failureOf(spawnCommand(['/bin/true'], '/', {})),
];
for (const descriptor of opened) closeSync(descriptor);
const { code } = await git.run(command, neverAborts);
console.log([...lines, `later: ${code}`].join('\n'));
