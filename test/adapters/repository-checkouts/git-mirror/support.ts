import { cp, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { onTestFinished } from 'vitest';
import { createGitMirror, type GitMirrorOptions } from '../../../../src/adapters/repository-checkouts/git-mirror/index.ts';
import { isFailure } from '../../../../src/domain/failure.ts';
import { neverAborts } from '../../../../src/ports/abort-signals.ts';
import type { CheckoutRequest, RepositoryCheckouts, WorkTreeRequest } from '../../../../src/ports/repository-checkouts.ts';
import { createRepository, type CommitDescription, type RepositoryDescription } from '../../../contracts/git-repository.ts';
import { openWorkTree, type WorkTree } from '../../../contracts/work-tree.ts';
import { startGitHttp, type GitHttp } from '../../../doubles/git-http/index.ts';

export const start = 1_600_000_000;
export const token = 'ghs_0123456789abcdefSECRET';
export const authorization = `Basic ${Buffer.from(`x-access-token:${token}`).toString('base64')}`;
export const noProgress = (): void => undefined;

/** Creates a folder that is removed after the test. */
export async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'skep-git-mirror-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

/** Creates the repository below the root. Replaces an earlier one of the same name. */
export async function publish(root: string, name: string, description: RepositoryDescription): Promise<string> {
  const [made, place] = [join(root, `.new-${Math.random()}`), join(root, `${name}.git`)];
  await createRepository(made, description);
  await rm(place, { recursive: true, force: true });
  await mkdir(dirname(place), { recursive: true });
  await cp(made, place, { recursive: true });
  await rm(made, { recursive: true });
  return place;
}

/** Describes `count` commits that each add a different file. */
export function commits(count: number, prefix = 'c'): CommitDescription[] {
  return Array.from({ length: count }, (_, index) => ({
    id: `${prefix}${index}`,
    at: start + index,
    files: [[`${prefix}${index}.txt`, `${prefix} ${index}\n`] as const],
  }));
}

export function mirrorOf(root: string, options: Partial<GitMirrorOptions> = {}): RepositoryCheckouts {
  const mirror = createGitMirror({ root, ...options });
  onTestFinished(() => mirror.close());
  return mirror;
}

/** A host that accepts the token, with a repository `acme/shop`, and a folder for mirrors. */
export interface Scene {
  readonly host: GitHttp;
  readonly served: string;
  readonly root: string;
  readonly request: CheckoutRequest;
  publish(description: RepositoryDescription | readonly CommitDescription[], name?: string): Promise<string>;
  requestOf(name: string, more?: Partial<CheckoutRequest>): CheckoutRequest;
  mirror(options?: Partial<GitMirrorOptions>): RepositoryCheckouts;
  /** Returns the requests since the last call, with the number of objects that were sent. */
  asked(): string[];
}

export async function createScene(description: RepositoryDescription | readonly CommitDescription[] = commits(3)): Promise<Scene> {
  const [served, root] = [await temporaryFolder(), join(await temporaryFolder(), 'mirrors')];
  const host = await startGitHttp({ root: served, authorization });
  onTestFinished(() => host.close());
  let seen = 0;
  const requestOf = (name: string, more: Partial<CheckoutRequest> = {}): CheckoutRequest => {
    return { provider: 'github', repository: name, remote: { url: `${host.url}/${name}.git`, authorization }, branch: null, ...more };
  };
  const scene: Scene = {
    host,
    served,
    root,
    request: requestOf('acme/shop'),
    publish: (what, name = 'acme/shop') => publish(served, name, 'commits' in what ? what : { commits: what }),
    requestOf,
    mirror: (options) => mirrorOf(root, options),
    asked() {
      const asked = host.requests.slice(seen).map(({ command, objects }) => `${command ?? 'refs'}${objects > 0 ? ` ${objects}` : ''}`);
      seen = host.requests.length;
      return asked;
    },
  };
  await scene.publish(description);
  return scene;
}

/** Checks out the repository and unpacks it. */
export async function open(mirror: RepositoryCheckouts, request: WorkTreeRequest): Promise<WorkTree> {
  return await openWorkTree(await mirror.checkOut(request, noProgress, neverAborts), join(await temporaryFolder(), 'tree'));
}

/** Expects a failure whose message shows no temporary path. Returns the message. */
export async function failureOf(promise: Promise<unknown>): Promise<string> {
  const error = await promise.then(() => null, (error: unknown) => error);
  if (!isFailure(error)) throw new Error('expected a failure', { cause: error });
  if (error.message.includes(tmpdir())) throw new Error(`the message holds a path: ${error.message}`);
  return error.message.replace(' ', ': ');
}
