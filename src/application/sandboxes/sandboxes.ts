import type { Page, PageRequest } from '../../domain/page.ts';
import type { OwnerScope } from '../../domain/principal.ts';
import type { Sandbox } from '../../domain/sandbox.ts';
import type { SandboxUsage } from '../../ports/sandbox-runtime.ts';
import type { SandboxFilter } from '../../ports/sandbox-store.ts';
import { bindUseCases, type Bound } from '../use-cases.ts';
import { adoptSandbox } from './adopt-sandbox.ts';
import { authorizePort } from './authorize-port.ts';
import { createPortLink } from './create-port-link.ts';
import { deleteSandbox } from './delete-sandbox.ts';
import { isPortAddress, notePortActivity, openPort } from './open-port.ts';
import { pauseSandbox } from './pause-sandbox.ts';
import { resumeSandbox } from './resume-sandbox.ts';
import { readLogs } from './read-logs.ts';
import type { SandboxesDeps } from './sandbox-deps.ts';
import { getSandbox } from './sandbox-records.ts';
import { checkParameters, startSandbox, startSandboxAs } from './start-sandbox.ts';

export type { PortAccess, PortVisitor } from './authorize-port.ts';
export type { PortGrant } from './create-port-link.ts';
export type { OpenPort } from './open-port.ts';
export type { StartSandboxRequest } from './start-sandbox.ts';

const useCases = {
  start: startSandbox,
  startAs: startSandboxAs,
  checkParameters,
  get: ({ store }: SandboxesDeps, scope: OwnerScope, id: string): Promise<Sandbox> => getSandbox(store, scope, id),
  /** Returns the sandboxes, newest first. Reads the store only. */
  search: ({ store }: SandboxesDeps, scope: OwnerScope, filter: SandboxFilter, page: PageRequest): Promise<Page<Sandbox>> =>
    store.search(scope, filter, page),
  /** Returns what the sandbox takes now. Throws `sandbox_not_found`, `runtime_unavailable` or `runtime_timeout`. */
  usage: async ({ store, runtime }: SandboxesDeps, scope: OwnerScope, id: string): Promise<SandboxUsage> =>
    runtime.usage((await getSandbox(store, scope, id)).instanceId),
  logs: readLogs,
  pause: pauseSandbox,
  resume: resumeSandbox,
  delete: deleteSandbox,
  adopt: adoptSandbox,
  authorizePort,
  openPort,
  notePortActivity,
  isPortAddress,
  createPortLink,
};

/** The use cases of sandboxes. A start takes the owner, the others whose sandboxes the caller sees: others do not exist for it. */
export type Sandboxes = Bound<typeof useCases>;

export function createSandboxes(deps: SandboxesDeps): Sandboxes {
  return bindUseCases({ ...deps, wakes: new Map() }, useCases);
}
