import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

export interface GitQuestion {
  readonly id: number;
  readonly gitDir: string;
  readonly args: readonly string[];
}

export interface GitAnswer {
  readonly id: number;
  /** Null if git fails. */
  readonly output: Buffer | null;
}

const run = promisify(execFile);

async function answer({ id, gitDir, args }: GitQuestion): Promise<GitAnswer> {
  const env = { PATH: process.env['PATH'], GIT_DIR: gitDir, GIT_CONFIG_NOSYSTEM: '1', GIT_CONFIG_GLOBAL: '/dev/null', GIT_LITERAL_PATHSPECS: '1' };
  const output = await run('git', args, { env, encoding: 'buffer', maxBuffer: 256 * 1024 * 1024 }).then(({ stdout }) => stdout, () => null);
  return { id, output };
}

// This process ends with the one that has started it.
process.on('message', (question: GitQuestion) => void answer(question).then((given) => process.send?.(given)));
