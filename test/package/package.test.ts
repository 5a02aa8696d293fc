import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { cp, mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { oldestNode } from '../support/oldest-node.ts';
import { cleanEnv, removeFolder, temporaryFolder } from '../support/server.ts';

const run = promisify(execFile);
const project = join(import.meta.dirname, '../..');
let app: string;

/** Creates a folder with the packed package and the packages that it depends on. */
beforeAll(async () => {
  app = await temporaryFolder();
  await run(process.execPath, ['build.ts', 'package'], { cwd: project });
  await run('npm', ['pack', '--ignore-scripts', '--pack-destination', app], { cwd: project });
  const tarball = (await readdir(app)).find((name) => name.endsWith('.tgz')) ?? 'none';
  const modules = join(app, 'node_modules');
  await mkdir(join(modules, 'skep'), { recursive: true });
  await run('tar', ['-xzf', join(app, tarball), '-C', join(modules, 'skep'), '--strip-components=1']);
  const installed = (await readdir(join(project, 'node_modules'))).filter((name) => !name.startsWith('.') && name !== 'skep');
  await Promise.all(installed.map((name) => symlink(join(project, 'node_modules', name), join(modules, name))));
  await writeFile(join(app, 'package.json'), '{"type":"module"}');
});
afterAll(async () => await removeFolder(app));

async function script(name: string, source: string): Promise<unknown> {
  await writeFile(join(app, name), source);
  const { stdout } = await run(process.execPath, [name], { cwd: app, env: cleanEnv() });
  return JSON.parse(stdout);
}

const adapters = (urls: string[]) => new Set(urls.flatMap((url) => /\/src\/adapters\/([^/]+(?:\/[^/.]+)?)\//.exec(url)?.[1] ?? []));

/** Records every module that is loaded. */
const hooks = `
import { registerHooks } from 'node:module';
const loaded = [];
registerHooks({ load(url, context, next) { loaded.push(url); return next(url, context); } });
`;

const ownProvider = `
const own = {
  name: 'own', family: 'other', hosts: ['git.example.com'],
  listFiles: async (repository, query) => ({ directory: query.directory('shop'), files: [{ path: query.directory('shop') + '/a.md', blobId: '0'.repeat(40), createdAt: 0 }] }),
  readFile: async () => Buffer.from('text'),
  find: async (path) => ({ path, defaultBranch: 'main' }),
  remote: async (path) => ({ url: 'https://git.example.com/' + path, authorization: null }),
  check: async () => ({ ok: true, detail: 'mine' }),
  close: async () => {},
};
`;

test('every subpath of the package can be imported, and exports something', async () => {
  const found = await script('subpaths.js', `
    const { exports } = (await import('skep/package.json', { with: { type: 'json' } })).default;
    const found = {};
    for (const subpath of Object.keys(exports).filter((name) => !name.endsWith('.json'))) {
      found[subpath] = Object.keys(await import('skep' + subpath.slice(1)));
    }
    console.log(JSON.stringify(found));
  `);
  const names = found as Record<string, string[]>;
  expect(Object.keys(names).length).toBeGreaterThan(6);
  for (const [subpath, exported] of Object.entries(names)) expect(exported, subpath).not.toEqual([]);
  expect(names['.']).toContain('createSkep');
  expect(names['./express']).toContain('createRouter');
  expect(names['./testing']).toContain('gitProviderContract');
});

test('a Node that is too old loads the package, and createSkep says which Node it needs', async ({ skip }) => {
  const { stdout: version } = await run(oldestNode(), ['-p', 'process.versions.node']);
  if (Number(version.split('.')[0]) >= 24) skip('no older Node is installed');
  await writeFile(join(app, 'old.js'), `
    import { createSkep } from 'skep';
    import 'skep/express';
    import 'skep/proxy';
    await createSkep().catch((error) => console.log(error.message));
  `);
  const { stdout } = await run(oldestNode(), ['old.js'], { cwd: app, env: cleanEnv() });
  expect(stdout).toBe(`Skep needs Node 24 or newer, and this is ${version.trim()}.\n`);
});

/** For ES modules in Node, and for a bundler. Declaration files are checked, too, so an import in them that cannot be resolved is found. */
test.each([['nodenext', 'nodenext'], ['esnext', 'bundler']])('every subpath has its types: module %s, resolution %s', async (module, moduleResolution) => {
  await writeFile(join(app, 'types.ts'), importAll(await subpaths()));
  const compilerOptions = { module, moduleResolution, target: 'es2024', lib: ['es2024'], types: ['node'], strict: true, noEmit: true };
  await writeFile(join(app, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['types.ts'] }));
  const { stdout } = await run(join(project, 'node_modules/.bin/tsc'), ['-p', '.'], { cwd: app }).catch((error: unknown) => error as { readonly stdout: string });
  expect(stdout).toBe('');
});

async function subpaths(): Promise<readonly string[]> {
  const { exports } = JSON.parse(await readFile(join(project, 'package.json'), 'utf8')) as { readonly exports: object };
  return Object.keys(exports).filter((name) => !name.endsWith('.json'));
}

const importAll = (subpaths: readonly string[]): string => {
  const imports = subpaths.map((subpath, index) => `import * as m${index} from '${join('skep', subpath)}';`);
  return `${imports.join('\n')}\nexport const all = [${subpaths.map((_, index) => `m${index}`).join(', ')}];\n`;
};

describe('types', () => {
  const strict = {
    strict: true, module: 'nodenext', target: 'es2024', lib: ['es2024'], types: ['node'], noEmit: true, preserveSymlinks: true,
  };

  /** It is not inside the other folder, because the packages there would be found, too. */
  let alone: string;
  beforeAll(async () => {
    alone = await temporaryFolder();
  });
  afterAll(async () => await removeFolder(alone));

  /** Compiles the program with the packed package and the chosen packages of the project. Returns the errors. */
  async function compiled(name: string, program: string, chosen: (dev: boolean) => boolean, options: object): Promise<string> {
    const folder = join(alone, name);
    const modules = join(folder, 'node_modules');
    const lock = await readFile(join(project, 'package-lock.json'), 'utf8');
    const { packages } = JSON.parse(lock) as { packages: Record<string, { dev?: boolean }> };
    const paths = Object.keys(packages).filter((path) => path.lastIndexOf('node_modules/') === 0 && chosen(packages[path]?.dev === true));
    await mkdir(modules, { recursive: true });
    await cp(join(app, 'node_modules/skep'), join(modules, 'skep'), { recursive: true });
    for (const path of paths.filter((path) => existsSync(join(project, path)))) {
      await mkdir(dirname(join(folder, path)), { recursive: true });
      await symlink(join(project, path), join(folder, path));
    }
    await writeFile(join(folder, 'package.json'), '{"type":"module"}');
    await writeFile(join(folder, 'embed.ts'), program);
    const compilerOptions = { ...strict, ...options };
    await writeFile(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['embed.ts'] }));
    const tsc = join(project, 'node_modules/typescript/bin/tsc');
    const compiling = run(process.execPath, [tsc, '-p', folder], { cwd: folder });
    return await compiling.then(({ stdout }) => stdout, (error: { stdout: string }) => error.stdout);
  }

  test('need only the dependencies of the package, without the types of Express', async () => {
    // `./testing` needs Vitest, which its users have.
    const program = `
      ${importAll((await subpaths()).filter((name) => name !== './testing'))}
      import { createServer } from 'node:http';
      import type { Skep } from 'skep';
      import { createRouter } from 'skep/express';
      declare const skep: Skep;
      const router = createRouter(skep, { publicUrl: 'https://example.org' });
      createServer((request, response) => router(request, response, () => response.end()));
      // @ts-expect-error -- it would compile if the type of the router were unknown
      const not: string = router;
    `;
    expect(await compiled('dependencies', program, (dev) => !dev, { skipLibCheck: false })).toBe('');
  });

  test('of skep/express are compatible with the types of Express', async () => {
    const program = `
      import express from 'express';
      import type { Skep } from 'skep';
      import { createRouter } from 'skep/express';
      declare const skep: Skep;
      express().use('/agents', createRouter(skep));
      express().use('/parsed', express.json(), createRouter(skep));
      express.Router().use(createRouter(skep));
    `;
    expect(await compiled('with-express', program, () => true, { skipLibCheck: true })).toBe('');
  });
});

test('the package can be embedded under a prefix, with a custom adapter', async () => {
  const answer = await script('embed.js', `
    import express from 'express';
    import { createSkep } from 'skep';
    import { createRouter } from 'skep/express';
    ${ownProvider}
    const skep = await createSkep({ git: [own], auth: { kind: 'api-keys', staticKey: 'a-static-key-of-mine' } });
    const app = express();
    app.use('/agents', createRouter(skep));
    app.get('/mine', (request, response) => response.send('mine'));
    const server = app.listen(0, '127.0.0.1');
    await new Promise((resolve) => server.once('listening', resolve));
    const url = 'http://127.0.0.1:' + server.address().port;
    const headers = { 'X-Session-API-Key': 'a-static-key-of-mine' };
    const microagents = await (await fetch(url + '/agents/api/user/repository/acme%2Fshop/microagents', { headers })).json();
    const started = await fetch(url + '/agents/api/v1/sandboxes', { method: 'POST', headers });
    const { id, status } = await started.json();
    const deleted = await fetch(url + started.headers.get('location').replace(url, ''), { method: 'DELETE', headers });
    const mine = await (await fetch(url + '/mine')).text();
    server.close();
    await skep.close();
    console.log(JSON.stringify({ microagents, started: started.status, status, deleted: deleted.status, mine }));
  `);
  expect(answer).toEqual({
    microagents: [{ name: 'a', path: '.skep/microagents/a.md', created_at: expect.stringMatching(/^1970-01-01T00:00:00(\.000)?Z$/) }],
    started: 201, status: 'STARTING', deleted: 204, mine: 'mine',
  });
});

test('the import of skep loads no adapter, and a deployment loads only the adapters that it uses', async () => {
  const loaded = await script('lazy.js', `
    ${hooks}
    const { createSkep } = await import('skep');
    const atImport = [...loaded];
    ${ownProvider}
    const skep = await createSkep({ git: [own] });
    await skep.microagents.list('acme/shop', null);
    await skep.close();
    console.log(JSON.stringify({ atImport, inUse: loaded }));
  `);
  const { atImport, inUse } = loaded as { atImport: string[]; inUse: string[] };
  expect(atImport.some((url) => url.includes('skep/dist/'))).toBe(true);
  // `describeReason` and `describeFailure` need the table of messages in `shared`, which is no adapter.
  expect([...adapters(atImport)]).toEqual(['shared']);
  // The schema of the options includes the Docker part of a spec, which does not load the Docker client.
  expect(inUse.filter((url) => url.includes('/sandbox-runtime/docker/'))).toEqual([expect.stringMatching(/spec-options\.js$/)]);
  expect(adapters(inUse)).toEqual(new Set(['store', 'store/sqlite', 'clock', 'random', 'logger', 'sandbox-runtime', 'sandbox-runtime/process', 'sandbox-runtime/docker', 'readiness-probe', 'auth/api-keys', 'repository-checkouts/git-mirror', 'shared']));
  expect(inUse.filter((url) => /\/(express|dockerode|commander|yaml)\//.test(url))).toEqual([]);
});
