import type { Page, PageRequest } from '../../domain/page.ts';
import type { PauseKind, Sandbox } from '../../domain/sandbox.ts';
import type { SandboxFilter } from '../../ports/sandbox-store.ts';
import { deleteSandbox, type DeleteSandboxDeps } from './delete-sandbox.ts';
import { getSandbox } from './find-sandbox.ts';
import { pauseSandbox, type PauseSandboxDeps } from './pause-sandbox.ts';
import { resumeSandbox, type ResumeSandboxDeps } from './resume-sandbox.ts';
import { startSandbox, startSandboxAs, type StartSandboxDeps, type StartSandboxRequest } from './start-sandbox.ts';

export type { StartSandboxRequest } from './start-sandbox.ts';

export type SandboxesDeps = StartSandboxDeps & PauseSandboxDeps & ResumeSandboxDeps & DeleteSandboxDeps;

/** The use cases of sandboxes. Each takes the owner; another owner's sandbox does not exist for it. */
export class Sandboxes {
  readonly #deps: SandboxesDeps;

  constructor(deps: SandboxesDeps) {
    this.#deps = deps;
  }

  /** See {@link startSandbox}. */
  async start(ownerId: string, request: StartSandboxRequest): Promise<Sandbox> {
    return await startSandbox(this.#deps, this.newId(), ownerId, request);
  }

  /** Returns an id for a sandbox that is started later. */
  newId(): string {
    return this.#deps.random.id('sb');
  }

  /** See {@link startSandboxAs}. */
  async startAs(id: string, ownerId: string, specId: string | null): Promise<Sandbox> {
    return await startSandboxAs(this.#deps, id, ownerId, specId);
  }

  /** See {@link getSandbox}. */
  async get(ownerId: string, id: string): Promise<Sandbox> {
    return await getSandbox(this.#deps.store, ownerId, id);
  }

  /** Returns the owner's sandboxes, newest first. Reads the store only. */
  async search(ownerId: string, filter: SandboxFilter, page: PageRequest): Promise<Page<Sandbox>> {
    return await this.#deps.store.search(ownerId, filter, page);
  }

  /** See {@link pauseSandbox}. */
  async pause(ownerId: string, id: string, pauseKind: PauseKind): Promise<Sandbox> {
    return await pauseSandbox(this.#deps, ownerId, id, pauseKind);
  }

  /** See {@link resumeSandbox}. */
  async resume(ownerId: string, id: string): Promise<Sandbox> {
    return await resumeSandbox(this.#deps, ownerId, id);
  }

  /** See {@link deleteSandbox}. */
  async delete(ownerId: string, id: string): Promise<void> {
    await deleteSandbox(this.#deps, ownerId, id);
  }
}
