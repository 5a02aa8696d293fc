import { Failure } from '../../domain/failure.ts';
import { exposedPort, isWokenByAccess, touchIntervalMs } from '../../domain/sandbox-access.ts';
import type { Sandbox } from '../../domain/sandbox.ts';
import type { SandboxRuntime } from '../../ports/sandbox-runtime.ts';
import { authorizePort, type PortVisitor } from './authorize-port.ts';
import { resumeSandbox } from './resume-sandbox.ts';
import type { SandboxesDeps } from './sandbox-deps.ts';
import { awaitStatus } from './sandbox-reconciler.ts';
import { getSandbox } from './sandbox-records.ts';

export interface OpenPortDeps extends SandboxesDeps {
  /** The resumptions under way, by the id of the sandbox: all visitors of one sandbox wait for the same one. */
  readonly wakes: Map<string, Promise<Sandbox>>;
}

/** Where the port of a running sandbox is reached from this machine. */
export interface OpenPort {
  readonly sandbox: Sandbox;
  readonly url: string;
  /** The sandbox's own key, if the program on the port checks it and the visitor has a credential; null otherwise. */
  readonly sessionKey: string | null;
}

/** How long visitors wait for a sandbox that wakes. */
const wakeWithinMs = 60_000;

/** How often a sandbox on the way is waited for. Each wait is bounded too. */
const maxTries = 4;

/**
 * Returns where the port is reached, and notes the activity. Wakes the sandbox if its spec says so, but not for somebody whom only the
 * spec lets in. Throws what `authorizePort` throws, `sandbox_not_running` (paused, and not woken), `sandbox_busy` (on the way, for longer
 * than a minute), `port_closed` (the runtime gave the port no address), and what a resumption throws.
 */
export async function openPort(deps: OpenPortDeps, id: string, port: number, visitor: PortVisitor): Promise<OpenPort> {
  const { sandbox: found, isAnonymous } = await authorizePort(deps, id, port, visitor);
  const sandbox = found.status === 'RUNNING' ? found : await untilRunning(deps, found, isAnonymous);
  const url = sandbox.exposedUrls.find((one) => one.port === port)?.url;
  if (url === undefined) throw new Failure('port_closed', { id, port });
  const sessionKey = !isAnonymous && exposedPort(sandbox, port)?.wantsSessionKey === true ? sandbox.sessionApiKey : null;
  return { sandbox: await notePortActivity(deps, sandbox), url, sessionKey };
}

/** Writes that the sandbox is active, unless that was written a short time ago. Returns the sandbox with the time that was written last. */
export async function notePortActivity({ store, clock }: Pick<OpenPortDeps, 'store' | 'clock'>, sandbox: Sandbox): Promise<Sandbox> {
  const now = clock.now();
  if (now - sandbox.lastActiveAt < touchIntervalMs(sandbox)) return sandbox;
  await store.touch(sandbox.id, now);
  return { ...sandbox, lastActiveAt: now };
}

/**
 * Returns true if the runtime says that the sandbox runs and has this address. The runtime may have given the address of a sandbox that
 * ended to another one, before its record says so. So who has connected to the address asks, and uses the connection only then. Throws
 * `runtime_unavailable` or `runtime_timeout`.
 */
export async function isPortAddress(deps: { readonly runtime: Pick<SandboxRuntime, 'inspect'> }, opened: OpenPort): Promise<boolean> {
  const { state, exposedUrls } = await deps.runtime.inspect(opened.sandbox.instanceId);
  return state === 'running' && exposedUrls.some(({ url }) => url === opened.url);
}

async function untilRunning(deps: OpenPortDeps, { id, status, ...sandbox }: Sandbox, isAnonymous: boolean): Promise<Sandbox> {
  if (status === 'STARTING') throw new Failure('sandbox_busy', { id, status });
  // Somebody resumes it already, so waiting wakes nothing.
  const mayWait = status === 'RESUMING' || (!isAnonymous && isWokenByAccess(sandbox));
  if (!mayWait || status === 'ERROR' || status === 'MISSING') throw new Failure('sandbox_not_running', { id, status });
  const underWay = deps.wakes.get(id);
  if (underWay !== undefined) return await underWay;
  const wake = resumeWithin(deps, id).finally(() => deps.wakes.delete(id));
  deps.wakes.set(id, wake);
  return await wake;
}

/** Resumes the sandbox, from a pause that is under way too. */
async function resumeWithin(deps: OpenPortDeps, id: string): Promise<Sandbox> {
  const until = deps.clock.now() + wakeWithinMs;
  for (let tries = 1; ; tries += 1) {
    const { status } = await getSandbox(deps.store, null, id);
    const sandbox = status === 'PAUSING' ? await awaitStatus(deps, null, id, 'PAUSED') : await resumeSandbox(deps, null, id);
    if (sandbox.status === 'RUNNING') return sandbox;
    if (tries === maxTries || deps.clock.now() >= until) throw new Failure('sandbox_busy', { id, status: sandbox.status });
  }
}
