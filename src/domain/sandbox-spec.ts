import type { AgentSpec } from './agent.ts';

/** A template from which sandboxes are started. */
export interface SandboxSpec {
  readonly id: string;
  readonly description: string | null;
  /** Container image; the process runtime runs the command on the host and ignores it. */
  readonly image: string | null;
  /** The program and its arguments; null is the image's own. */
  readonly command: readonly string[] | null;
  /** Absolute path inside the sandbox; the process runtime maps it to the sandbox's workspace folder. */
  readonly workingDir: string;
  readonly initialEnv: Readonly<Record<string, string>>;
  /** Environment variable in which the sandbox's own key is delivered. */
  readonly sessionKeyEnv: string;
  readonly ports: readonly SandboxPort[];
  readonly ready: ReadinessRule;
  readonly resources: SandboxResources;
  readonly isolation: SandboxIsolation;
  /** What only one runtime understands, by the runtime's name: `{ docker: {...} }`. The runtime's adapter validates its part. */
  readonly runtimeOptions: Readonly<Record<string, unknown>>;
  /** Labels for whoever looks at the engine; none can set what Skep itself writes down there. */
  readonly labels: Readonly<Record<string, string>>;
  readonly rest: RestRule;
  readonly pool: PoolRule;
  /** The coding agent that conversations run in the sandbox; null is none. */
  readonly agent: AgentSpec | null;
}

export interface SandboxPort {
  readonly name: string;
  /** The port inside the sandbox, 1 to 65535. */
  readonly port: number;
}

/** When a sandbox counts as ready, and how long it may take from its turn to start until then. */
export interface ReadinessRule {
  readonly probe:
    | { readonly kind: 'none' }
    | { readonly kind: 'tcp'; readonly port: number }
    | { readonly kind: 'http'; readonly port: number; readonly path: string };
  readonly withinMs: number;
}

/** What a sandbox may take; null is no limit. */
export interface SandboxResources {
  /** CPUs, fractions allowed. */
  readonly cpus: number | null;
  /** Memory, swap included. */
  readonly memoryBytes: number | null;
  /** Processes and threads. */
  readonly pids: number | null;
  /** Open files of one process. */
  readonly openFiles: number | null;
  /** What is kept of its output. */
  readonly logBytes: number | null;
}

/** How sandboxes are isolated, as far as every runtime can offer it. */
export interface SandboxIsolation {
  /** Is everything but the working directory and `/tmp` read-only? */
  readonly readOnlyRoot: boolean;
  /** `isolated`: no other sandbox and no metadata address can be reached; `shared`: other sandboxes can; `none`: no network. */
  readonly network: 'isolated' | 'shared' | 'none';
  /** The user that its programs run as, `name` or `uid:gid`; null is the image's own. */
  readonly user: string | null;
}

/** How long a sandbox may rest, in milliseconds, before it goes on to the next tier; null is for ever. */
export interface RestRule {
  /** From the last activity of a running sandbox to its freeze. */
  readonly freezeAfterMs: number | null;
  /** From the freeze to the stop. */
  readonly stopAfterMs: number | null;
  /** From the stop to the deletion. */
  readonly deleteAfterMs: number | null;
  /** From the creation (of one from a pool: from when it was handed out) to the deletion, whatever its status. */
  readonly maxLifeMs: number | null;
}

/** How many sandboxes of the spec are kept running, unowned, for the next that ask. */
export interface PoolRule {
  readonly size: number;
}

const secretName = /(secret|token|password|passwd|credential|private|api_?key|access_?key|auth)/i;

/** The environment as it may be shown: the value of a variable whose name suggests a secret is masked. */
export function shownEnv(env: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(env).map(([name, value]) => [name, secretName.test(name) ? '**********' : value]),
  );
}

/** A spec in which whatever has a default may be left out. */
export type SandboxSpecInput = Pick<SandboxSpec, 'id'> & Partial<SandboxSpec>;

/** What a sandbox may take unless its spec says otherwise. */
export const defaultResources: SandboxResources = {
  cpus: 2,
  memoryBytes: 2 * 2 ** 30,
  pids: 512,
  openFiles: 16_384,
  logBytes: 20 * 2 ** 20,
};

/** The isolation of a sandbox unless its spec says otherwise. */
export const defaultIsolation: SandboxIsolation = { readOnlyRoot: false, network: 'isolated', user: null };

/** The spec with its defaults. */
export function sandboxSpec(input: SandboxSpecInput): SandboxSpec {
  return {
    description: null,
    image: null,
    command: null,
    workingDir: '/workspace',
    initialEnv: {},
    sessionKeyEnv: 'SESSION_API_KEY',
    ports: [],
    ready: { probe: { kind: 'none' }, withinMs: 60_000 },
    resources: defaultResources,
    isolation: defaultIsolation,
    runtimeOptions: {},
    labels: {},
    rest: { freezeAfterMs: null, stopAfterMs: null, deleteAfterMs: null, maxLifeMs: null },
    pool: { size: 0 },
    agent: null,
    ...input,
  };
}
