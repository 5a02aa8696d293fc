import { spawn } from 'node:child_process';
import { once } from 'node:events';

export const agents = '.skep/microagents';
const sources = 600;
const firstSecond = 1_500_000_000;

/** Runs git with a text as its input. Returns its output, one character for each byte. */
export async function git(gitDir: string, args: readonly string[], input = ''): Promise<string> {
  const child = spawn('git', args, { env: { PATH: process.env['PATH'], GIT_DIR: gitDir }, stdio: ['pipe', 'pipe', 'inherit'] });
  const chunks: Buffer[] = [];
  child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk));
  child.stdin.end(input);
  const [code] = await once(child, 'close');
  if (code !== 0) throw new Error(`git ${args[0]} ended with ${code}`);
  return Buffer.concat(chunks).toString('latin1');
}

/**
 * Creates a repository with a realistic history: some hundred source files, most commits change one or two of them, a branch is
 * merged sometimes, and microagents are added one by one and sometimes changed.
 */
export async function createHistory(gitDir: string, commits: number, microagents: number): Promise<void> {
  await git(gitDir, ['init', '--quiet', '--bare', '--initial-branch=main', gitDir]);
  const stream = Array.from({ length: commits }, (_, index) => commitCommand(index + 1, commits, microagents));
  await git(gitDir, ['fast-import', '--quiet'], stream.join(''));
}

/** Adds a commit to the main branch that changes a source file and a microagent. */
export async function addCommit(gitDir: string, number: number): Promise<void> {
  const at = firstSecond + 1_000_000_000 + number;
  const changes = [put(sourcePath(number), `again ${number}`), put(agentPath(number % 100), `again ${number}`)];
  const stream = [header(at, `more ${number}`), 'from refs/heads/main^0', ...changes];
  await git(gitDir, ['fast-import', '--quiet'], `${stream.join('\n')}\n`);
}

function commitCommand(number: number, commits: number, microagents: number): string {
  const lines = [header(firstSecond + number * 600, `commit ${number}`, number)];
  if (number > 1) lines.push(`from :${number - 1}`);
  if (number > 20 && number % 25 === 0) lines.push(`merge :${number - 10}`);
  if (number === 1) for (let source = 0; source < sources; source += 1) lines.push(put(sourcePath(source), `${source}`));
  else lines.push(put(sourcePath(number * 7919), `${number}`), put(sourcePath(number * 104_729), `${number}`));
  const before = Math.floor(((number - 1) * microagents) / commits);
  const after = Math.floor((number * microagents) / commits);
  for (let agent = before; agent < after; agent += 1) lines.push(put(agentPath(agent), 'new'));
  if (number % 50 === 7 && before > 0) lines.push(put(agentPath((number * 31) % before), `changed ${number}`));
  return `${lines.join('\n')}\n`;
}

function header(at: number, message: string, mark?: number): string {
  const who = `A <a@example.com> ${at} +0000`;
  const marked = mark === undefined ? '' : `mark :${mark}\n`;
  return `commit refs/heads/main\n${marked}author ${who}\ncommitter ${who}\n${data(message)}`;
}

function put(path: string, line: string): string {
  return `M 100644 inline ${path}\n${data(`${line}\n`.repeat(20))}`;
}

function data(text: string): string {
  return `data ${Buffer.byteLength(text)}\n${text}`;
}

function sourcePath(number: number): string {
  const source = number % sources;
  return `src/module-${source % 12}/part-${source % 30}/file-${source}.ts`;
}

function agentPath(number: number): string {
  return `${agents}/group-${number % 10}/agent-${number}.md`;
}
