import type { Page, PageRequest } from '../../domain/page.ts';
import type { OwnerScope } from '../../domain/principal.ts';
import type { Sandbox } from '../../domain/sandbox.ts';
import type { SandboxFilter } from '../../ports/sandbox-store.ts';
import { bindUseCases, type Bound } from '../use-cases.ts';
import { adoptSandbox, type AdoptSandboxDeps } from './adopt-sandbox.ts';
import { authorizePort } from './authorize-port.ts';
import { createPortLink } from './create-port-link.ts';
import { deleteSandbox, type DeleteSandboxDeps } from './delete-sandbox.ts';
import { isPortAddress, notePortActivity, openPort, type OpenPortDeps } from './open-port.ts';
import { pauseSandbox, type PauseSandboxDeps } from './pause-sandbox.ts';
import { resumeSandbox, type ResumeSandboxDeps } from './resume-sandbox.ts';
import { getSandbox } from './sandbox-records.ts';
import { sandboxUsage, type SandboxUsageDeps } from './sandbox-usage.ts';
import { startSandbox, startSandboxAs, type StartSandboxDeps } from './start-sandbox.ts';

export type { PortAccess, PortVisitor } from './authorize-port.ts';
export type { PortGrant } from './create-port-link.ts';
export type { OpenPort } from './open-port.ts';
export type { StartSandboxRequest } from './start-sandbox.ts';

type SandboxesDeps = StartSandboxDeps & PauseSandboxDeps & ResumeSandboxDeps & DeleteSandboxDeps & AdoptSandboxDeps
  & SandboxUsageDeps & OpenPortDeps;

const useCases = {
  start: startSandbox,
  startAs: startSandboxAs,
  get: ({ store }: SandboxesDeps, scope: OwnerScope, id: string): Promise<Sandbox> => getSandbox(store, scope, id),
  /** Returns the sandboxes, newest first. Reads the store only. */
  search: ({ store }: SandboxesDeps, scope: OwnerScope, filter: SandboxFilter, page: PageRequest): Promise<Page<Sandbox>> =>
    store.search(scope, filter, page),
  usage: sandboxUsage,
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

export function createSandboxes(deps: Omit<SandboxesDeps, 'wakes'>): Sandboxes {
  return bindUseCases({ ...deps, wakes: new Map() }, useCases);
}
