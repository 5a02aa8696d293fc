import { describe, expect, test } from 'vitest';
import { parseRepositoryName } from '../../../../src/domain/repository-name.ts';
import { agents, failureOf, list, start } from '../support.ts';
import { createScene, simple, simpleListing } from './support.ts';

const odd = ['?', '#', '%', 'a?b=c', 'a#b', '%2e%2e', '%2F', 'a b', ' ', 'ü', '日本', '🐝', '"', "it's", '<>', ':owner', '{owner}', '{+x}', ';', '&x=1', '=', '+', '@', '...', '.git', '-x', '~', '\u2028'];

describe('A name with special characters', () => {
  test.each(odd)('stays one segment of the request path: %s', async (name) => {
    const scene = await createScene();
    for (const repository of [`acme/${name}`, `${name}/shop`]) {
      const path = repository.split('/').map(encodeURIComponent).join('/');
      const asked = (): string[] => scene.double.requests.map((request) => decodeURIComponent(request.path));
      expect(await failureOf(list(scene.anonymous(), repository))).toMatch(/^repository_not_found: /u);
      expect(asked()).toEqual([decodeURIComponent(`/repos/${path}`)]);
      expect(scene.double.requests[0]?.segments).toEqual(['repos', ...repository.split('/')]);
      expect(scene.double.requests[0]?.query.size).toBe(0);
      scene.double.forget();
      expect(await failureOf(list(scene.provider(), repository))).toMatch(/^repository_not_found: /u);
      expect(asked()).toEqual(['/graphql']);
      scene.double.forget();
    }
  });

  test('is listed if the repository exists, also a second time', async () => {
    for (const name of odd) {
      const scene = await createScene();
      await scene.publish(simple, `acme/${name}`);
      const provider = scene.provider();
      for (let time = 0; time < 2; time += 1) expect(await list(provider, `acme/${name}`)).toEqual(simpleListing);
      expect(scene.double.requests.at(-1)?.segments).toEqual(['repos', 'acme', name, 'commits', 'HEAD']);
    }
  });

  test.each(['.', '..', '../..', 'a/..', '../a', './a', 'a', 'a/', '/a', '', 'a/b/c', 'a//b', '\ud800/a'])('is rejected without a request if it is invalid: %j', async (name) => {
    const scene = await createScene();
    for (const provider of [scene.provider(), scene.anonymous()]) {
      expect(await failureOf(list(provider, name))).toMatch(/^repository_not_found: /u);
      expect(await failureOf(provider.find(name))).toMatch(/^repository_not_found: /u);
    }
    expect(scene.asked()).toEqual([]);
  });

  test('is listed if it belongs to a directory or a file', async () => {
    const scene = await createScene();
    const directories = odd.filter((name) => parseRepositoryName(name).ok).map((name) => `${agents}/${name}`);
    await scene.publish({ commits: [{ id: 'a', at: start, files: directories.map((directory, index) => [`${directory}/${index}?#%.md`, 'x']) }] });
    for (const provider of [scene.provider(), scene.anonymous()]) {
      for (const [index, directory] of directories.entries()) {
        const { files } = await provider.listFiles('acme/shop', { directory: () => directory, accepts: () => true });
        expect(files).toEqual([{ path: `${directory}/${index}?#%.md`, blobId: expect.any(String), createdAt: start * 1000 }]);
      }
    }
    expect(scene.double.requests.every(({ segments }) => segments[0] === 'graphql' || segments[1] === 'acme')).toBe(true);
  });
});
