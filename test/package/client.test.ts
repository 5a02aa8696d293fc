import { execFile } from 'node:child_process';
import { cp, mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { gzipSync } from 'node:zlib';
import { build } from 'vite';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { acpAgentCommand } from '../doubles/acp-agent/start.ts';
import { describeWithChromium, openBrowser, openContext } from '../support/chromium.ts';
import { oldestNode } from '../support/oldest-node.ts';
import { cleanEnv, removeFolder, type Server, startServer, temporaryFolder } from '../support/server.ts';

const run = promisify(execFile);
const project = join(import.meta.dirname, '../..');
const compiler = join(project, 'node_modules/typescript/bin/tsc');
const key = 'a-static-key-of-the-client';
const agent = { protocol: 'acp', command: acpAgentCommand(), permissions: 'allow' };
let app: string;
let server: Server;

/** Creates a folder with the built client and no other package. Tests that run the client add the packages that it imports. */
beforeAll(async () => {
  app = await temporaryFolder();
  const modules = join(app, 'node_modules');
  await mkdir(join(modules, 'skep'), { recursive: true });
  await writeFile(join(app, 'tsconfig.json'), JSON.stringify({
    extends: join(project, 'tsconfig.build.json'), include: [], files: [join(project, 'src/client/index.ts')],
    compilerOptions: { rootDir: project, outDir: join(modules, 'skep/dist'), typeRoots: [join(project, 'node_modules/@types')] },
  }));
  await run(process.execPath, [compiler, '-p', app]);
  await cp(join(project, 'package.json'), join(modules, 'skep/package.json'));
  await writeFile(join(app, 'package.json'), '{"type":"module"}');
  server = await startServer({
    env: { SKEP_API_KEY: key }, config: { specs: [{ id: 'coder', command: ['sh', '-c', 'exec sleep infinity'], agent }] },
  });
});
afterAll(async () => {
  await server.close();
  await removeFolder(app);
});

async function withPackages(names: readonly string[]): Promise<void> {
  for (const name of names) await symlink(join(project, 'node_modules', name), join(app, 'node_modules', name)).catch(() => {});
}

const program = `
import { type api, createClient, isFailure } from 'skep/client';
const skep = createClient({ url: 'http://127.0.0.1:3000', key: 'a key' });
export async function main(signal: AbortSignal): Promise<void> {
  await using sandbox = await skep.sandboxes.start({ spec: 'workspace', metadata: { task: '42' }, waitUntil: 'running', signal });
  const state: api.Sandbox = sandbox.state;
  const { exit_code, stdout } = await sandbox.run('npm test');
  console.log(state.status, exit_code?.toFixed(), stdout.trim());
  for await (const { stream, bytes } of (await sandbox.executions.start(['sh'], { tty: { cols: 80, rows: 24 } })).attach()) console.log(stream, bytes.length);
  for await (const event of skep.events({ kinds: ['sandbox_moved'] })) if (event.kind === 'sandbox_moved') console.log(event.data.to);
  const { items } = await skep.request('GET /api/v1/sandboxes/search', { query: { limit: 10 } });
  console.log(items.length);
  // @ts-expect-error -- a route that does not exist
  await skep.request('GET /api/v1/nothing');
  // @ts-expect-error -- the id is missing
  await skep.request('GET /api/v1/sandboxes/{id}');
  try {
    await sandbox.pause('freeze');
  } catch (error) {
    if (isFailure(error) && error.code === 'sandbox_limit_reached') console.log(error.context.max.toFixed());
    // @ts-expect-error -- this code has no maximum
    if (isFailure(error, 'sandbox_busy')) console.log(error.context.max);
  }
}
`;

test.each(['nodenext', 'bundler'])('the types of the client compile without other packages: resolution %s', async (moduleResolution) => {
  const compilerOptions = {
    strict: true, exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true, skipLibCheck: false, noEmit: true, types: [],
    target: 'es2022', lib: ['es2022', 'dom'], module: moduleResolution === 'bundler' ? 'esnext' : 'nodenext', moduleResolution,
  };
  await writeFile(join(app, 'program.ts'), program);
  await writeFile(join(app, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['program.ts'] }));
  const { stdout } = await run(process.execPath, [compiler, '-p', app]).catch((error: unknown) => error as { readonly stdout: string });
  expect(stdout).toBe('');
});

test('the client runs on the oldest Node that is installed, with the WebSocket of the package ws', async () => {
  await withPackages(['eventsource-parser', 'ws']);
  await writeFile(join(app, 'old.js'), `
    import { createClient } from 'skep/client';
    import { WebSocket } from 'ws';
    const skep = createClient({ url: '${server.url}', key: '${key}', openSocket: (address) => new WebSocket(address) });
    const sandbox = await skep.sandboxes.start({ waitUntil: 'running' });
    const { stdout, exit_code } = await sandbox.run('echo hello; exit 3');
    await sandbox.files.write('/workspace/a.txt', 'text');
    const file = await (await sandbox.files.read('/workspace/a.txt')).text();
    const execution = await sandbox.executions.start(['cat'], { stdin: true });
    const attached = execution.attach();
    const written = attached.write('typed').then(() => attached.closeInput());
    let text = '';
    for await (const { bytes } of attached) text += Buffer.from(bytes).toString();
    await written;
    const [event] = await first(skep.events({ after: 0, kinds: ['sandbox_moved'] }));
    await sandbox.delete();
    console.log(JSON.stringify({ stdout, exit_code, file, text, end: attached.end.exit_code, kind: event.kind }));
    async function first(items) { for await (const item of items) return [item]; }
  `);
  const { stdout } = await run(oldestNode(), ['old.js'], { cwd: app, env: cleanEnv() });
  expect(JSON.parse(stdout)).toEqual({ stdout: 'hello\n', exit_code: 3, file: 'text', text: 'typed', end: 0, kind: 'sandbox_moved' });
});

/** Bundles a module for a page. Its exports become the properties of a global with this name. */
async function bundled(name: string, source: string): Promise<string> {
  await withPackages(['eventsource-parser']);
  await writeFile(join(app, `${name}.js`), source);
  const lib = { entry: join(app, `${name}.js`), name, formats: ['iife' as const], fileName: () => `${name}.js` };
  await build({ root: app, configFile: false, logLevel: 'error', build: { lib, outDir: 'bundle', emptyOutDir: false, minify: true } });
  return await readFile(join(app, `bundle/${name}.js`), 'utf8');
}

test('the bundled client is small, and uses nothing that only Node has', async () => {
  const bundle = await bundled('whole', `export { createClient } from 'skep/client';`);
  expect(bundle).not.toMatch(/node:|require\(|\bprocess\.|\bBuffer\b/);
  expect(gzipSync(bundle).length).toBeLessThan(10_000);
});

describeWithChromium('the client in a browser', () => {
  test('makes requests, and gets events and a terminal over a WebSocket', async () => {
    const source = await bundled('client', `
      import { createClient } from 'skep/client';
      export async function main(url, key) {
        const skep = createClient({ url, key });
        const sandbox = await skep.sandboxes.start({ waitUntil: 'running' });
        const { stdout } = await sandbox.run('echo hello');
        const shell = await sandbox.executions.start(['sh'], { tty: { cols: 80, rows: 24 } });
        const terminal = shell.attach();
        const typed = terminal.write('exit 4\\n');
        for await (const { bytes } of terminal);
        await typed;
        const kinds = [];
        for await (const { data } of skep.events({ after: 0, kinds: ['sandbox_moved'] })) if (kinds.push(data.to) > 1) break;
        await sandbox.delete();
        const failure = await skep.sandboxes.get(sandbox.id).catch((error) => error);
        return { stdout, exitCode: terminal.end.exit_code, events: kinds.length, code: failure.code };
      }
    `);
    await using browser = await openBrowser();
    const page = await (await openContext(browser, { bypassCSP: true })).newPage();
    await page.goto(`${server.url}/health`);
    await page.addScriptTag({ content: source });
    expect(await page.evaluate(`client.main(location.origin, '${key}')`)).toEqual({ stdout: 'hello\n', exitCode: 4, events: 2, code: 'sandbox_not_found' });
  });
});

async function example(name: string, ...args: readonly string[]): Promise<string> {
  await withPackages(['eventsource-parser']);
  await cp(join(project, 'examples/client', name), join(app, name));
  const env = cleanEnv({ SKEP_API_KEY: key, SKEP_PUBLIC_URL: server.url });
  return (await run(process.execPath, [join(app, name), ...args], { env })).stdout;
}

describe('the example', () => {
  test('ask.ts prints the answer of an agent', async () => {
    expect(await example('ask.ts', 'Why is the build red?')).toBe('heard: Why is the build red?\n');
  });

  test('sandbox.ts runs commands and writes files in a sandbox', async () => {
    expect(await example('sandbox.ts')).toBe('0 6 hello.txt\nline 1\nline 2\nline 3\nexited hello\n\n');
  });
});
