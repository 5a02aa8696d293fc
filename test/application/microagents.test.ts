import { describe, expect, test } from 'vitest';
import { Microagents } from '../../src/application/microagents/microagents.ts';
import { Repositories } from '../../src/application/repositories/repositories.ts';
import type { GitProvider } from '../../src/ports/git-provider.ts';
import { createMemoryGitProvider } from '../doubles/memory/index.ts';
import { microagentDeps } from './microagent-deps.ts';

test('a listing uses the current name that was checked against the patterns, not the requested one', async () => {
  const memory = createMemoryGitProvider({ repositories: [{ path: 'acme/shop', defaultBranch: 'main', files: [] }] });
  const listed: string[] = [];
  const provider: GitProvider = {
    ...memory,
    find: (_name, signal) => memory.find('acme/shop', signal),
    listFiles: (name, query, signal) => (listed.push(name), memory.listFiles(name, query, signal)),
  };
  const microagents = new Microagents({ repositories: new Repositories([provider]), ...microagentDeps() });
  expect(await microagents.list('acme/old-name', ['acme/*'])).toEqual([]);
  await expect(microagents.list('acme/old-name', ['other/*'])).rejects.toMatchObject({ code: 'repository_not_found' });
  expect(listed).toEqual(['acme/shop']);
});

test('a listing without patterns does not look up the repository first', async () => {
  const memory = createMemoryGitProvider({ repositories: [{ path: 'acme/shop', defaultBranch: 'main', files: [] }] });
  let asked = 0;
  const provider: GitProvider = { ...memory, find: (name, signal) => (asked += 1, memory.find(name, signal)) };
  expect(await new Microagents({ repositories: new Repositories([provider]), ...microagentDeps() }).list('acme/shop', null)).toEqual([]);
  expect(asked).toBe(0);
});

test.each([Number.NaN, Number.POSITIVE_INFINITY, 1e300])('a date of %d is an error that names the git provider', async (createdAt) => {
  const files = [{ path: '.skep/microagents/style.md', createdAt }];
  const provider = createMemoryGitProvider({ name: 'mine', repositories: [{ path: 'acme/shop', defaultBranch: 'main', files }] });
  const microagents = new Microagents({ repositories: new Repositories([provider]), ...microagentDeps() });
  await expect(microagents.list('acme/shop', null)).rejects.toThrow(`The git provider mine returned ${createdAt} as the date of a file`);
});

describe('the content of a microagent', () => {
  const path = '.skep/microagents/deploy/aws.md';
  const text = '---\ntriggers: [deploy, aws]\ntype: knowledge\n---\n# Deploy\r\n';
  const shop = (content: string | Uint8Array) => ({
    path: 'acme/shop',
    defaultBranch: 'main',
    files: [
      { path, createdAt: 7, content },
      { path: '.skep/microagents/README.md', createdAt: 0, content: 'no microagent' },
      { path: '.env', createdAt: 0, content: 'A_SECRET=1' },
    ],
  });

  function world(content: string | Uint8Array) {
    const memory = createMemoryGitProvider({ repositories: [shop(content)] });
    const reads: string[] = [];
    const readFile: GitProvider['readFile'] = (name, file, maxBytes, signal) => {
      reads.push(`${name} ${file.path} ${maxBytes}`);
      return memory.readFile(name, file, maxBytes, signal);
    };
    const repositories = new Repositories([{ ...memory, readFile }]);
    return { memory, reads, microagents: new Microagents({ repositories, ...microagentDeps() }) };
  }

  test('comes with its triggers and front matter, and is read from the host once', async () => {
    const { microagents, reads } = world(text);
    for (let time = 0; time < 2; time += 1) {
      expect(await microagents.read('acme/shop', path, null)).toEqual({
        name: 'deploy/aws',
        path,
        createdAt: 7,
        content: '# Deploy\r\n',
        triggers: ['deploy', 'aws'],
        frontMatter: { triggers: ['deploy', 'aws'], type: 'knowledge' },
        frontMatterProblem: null,
        gitProvider: 'memory',
      });
    }
    expect(reads).toEqual([`acme/shop ${path} 1048576`]);
  });

  test('is read again after a change, and is not found after the repository is removed', async () => {
    const { memory, microagents, reads } = world(text);
    await microagents.read('acme/shop', path, null);
    memory.put(shop('another text'));
    expect((await microagents.read('acme/shop', path, null)).content).toBe('another text');
    memory.remove('acme/shop');
    await expect(microagents.read('acme/shop', path, null)).rejects.toMatchObject({ code: 'repository_not_found' });
    expect(reads).toHaveLength(2);
  });

  test('is returned only if the patterns match, even if it was read before', async () => {
    const { microagents, reads } = world(text);
    expect((await microagents.read('acme/shop', path, ['acme/*'])).name).toBe('deploy/aws');
    await expect(microagents.read('acme/shop', path, ['other/*'])).rejects.toMatchObject({ code: 'repository_not_found' });
    await expect(microagents.read('acme/shop', path, [])).rejects.toMatchObject({ code: 'repository_not_found' });
    expect(reads).toHaveLength(1);
  });

  test.each(['.skep/microagents/README.md', '.env', 'deploy/aws', `/${path}`, `./${path}`, '.skep/microagents/../microagents/deploy/aws.md', ''])(
    'fails with `file_not_found` for a path that is not a microagent: %j',
    async (other) => {
      const { microagents, reads } = world(text);
      await expect(microagents.read('acme/shop', other, null)).rejects.toMatchObject({ code: 'file_not_found', context: { path: other } });
      expect(reads).toEqual([]);
    },
  );

  test('fails if the file is larger than 1 MiB', async () => {
    const { microagents } = world('x'.repeat(2 ** 20 + 1));
    const context = { problems: [{ argument: 'filePath', reason: { code: 'too_large', limit: '1048576 bytes in a file' } }] };
    await expect(microagents.read('acme/shop', path, null)).rejects.toMatchObject({ code: 'invalid_request', context });
  });

  test('has replacement characters for invalid UTF-8, and no byte order mark', async () => {
    const { microagents } = world(Buffer.concat([Buffer.from('\ufeff---\ntype: repo\n---\ngr'), Buffer.of(0xfc, 0xdf), Buffer.from('e')]));
    expect(await microagents.read('acme/shop', path, null)).toMatchObject({ content: 'gr\ufffd\ufffde', frontMatter: { type: 'repo' } });
  });

  test.each([
    ['---\ntriggers: deploy\n---\nx', 'triggers', 'x'],
    ['---\ntriggers: [1]\n---\nx', 'triggers', 'x'],
    ['---\ntriggers: [deploy, " "]\n---\nx', 'triggers', 'x'],
    ['---\na: [\n---\nx', 'not_yaml', '---\na: [\n---\nx'],
  ])('reports what is wrong with the front matter %j', async (broken, problem, content) => {
    const { microagents } = world(broken);
    expect(await microagents.read('acme/shop', path, null)).toMatchObject({ content, triggers: [], frontMatterProblem: { problem } });
  });

  test('has no triggers if the key has no value', async () => {
    const { microagents } = world('---\ntriggers:\n---\nx');
    expect(await microagents.read('acme/shop', path, null)).toMatchObject({ triggers: [], frontMatterProblem: null });
  });
});
