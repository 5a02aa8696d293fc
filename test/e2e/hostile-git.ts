import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Creates a repository with corrupt objects, and a valid one for which git hangs. */
export function corruptRepository(path: string): void {
  const git = (...args: string[]) => execFileSync('git', ['-C', path, '-c', 'user.name=a', '-c', 'user.email=a@example.com', ...args]);
  for (const name of [path, `${path}-not`]) {
    mkdirSync(join(name, '.skep/microagents'), { recursive: true });
    writeFileSync(join(name, '.skep/microagents/a.md'), '# A\n');
    execFileSync('git', ['init', '-q', name]);
  }
  git('add', '.');
  git('commit', '-qm', 'One');
  const objects = join(path, '.git/objects');
  for (const prefix of readdirSync(objects).filter((name) => name.length === 2)) {
    for (const name of readdirSync(join(objects, prefix))) {
      chmodSync(join(objects, prefix, name), 0o644);
      writeFileSync(join(objects, prefix, name), 'rubbish');
    }
  }
  execFileSync('git', ['-C', `${path}-not`, 'add', '.']);
  execFileSync('git', ['-C', `${path}-not`, '-c', 'user.name=a', '-c', 'user.email=a@example.com', 'commit', '-qm', 'Take your time']);
}

/** Writes a `git` that hangs for the second repository, and creates the file `hangs` then. Other calls run the real git. */
export function hangingGit(programs: string): void {
  mkdirSync(programs, { recursive: true });
  const real = execFileSync('sh', ['-c', 'command -v git'], { encoding: 'utf8' }).trim();
  writeFileSync(join(programs, 'git'), `#!/bin/sh\ncase "$GIT_OBJECT_DIRECTORY" in *corrupt-not*) : > ${join(programs, 'hangs')}; exec sleep 1000;; esac\nexec ${real} "$@"\n`, { mode: 0o755 });
}
