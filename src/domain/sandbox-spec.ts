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
  /** Variables of Skep's own environment that the command gets too. Their values are never stored in a record or a response. */
  readonly secrets: readonly string[];
  /** Variables of Skep's own environment that a start may ask for. */
  readonly allowedSecrets: readonly string[];
  readonly allowPlainSecrets: boolean;
  readonly sessionKeyEnv: string;
  readonly ports: readonly SandboxPort[];
  readonly wakeOnAccess: WakeOnAccess;
  readonly ready: ReadinessRule;
  readonly resources: SandboxResources;
  readonly isolation: SandboxIsolation;
  /** Options that only one runtime understands, by the runtime's name: `{ docker: {...} }`. The runtime's adapter validates its part. */
  readonly runtimeOptions: Readonly<Record<string, unknown>>;
  /** Labels for people who look at the runtime. They can't replace Skep's own labels. */
  readonly labels: Readonly<Record<string, string>>;
  readonly rest: RestRule;
  readonly pool: PoolRule;
  readonly agent: AgentSpec | null;
}

export interface SandboxPort {
  readonly name: string;
  /** The port inside the sandbox, 1 to 65535. */
  readonly port: number;
  /** True if anyone may reach it through the proxy. Otherwise a visitor needs a key or a link. */
  readonly public?: boolean | undefined;
  /** True if the program checks the sandbox's key in `X-Session-API-Key`. The proxy then sends it for visitors with a credential. */
  readonly wantsSessionKey?: boolean | undefined;
  /** True if the program knows the path at which the proxy serves it, and gets full paths. Otherwise the proxy removes that prefix. */
  readonly keepsPrefix?: boolean | undefined;
}

export const wakesOnAccess = ['none', 'freeze', 'stop'] as const;

/** Which paused sandboxes a request for one of their ports resumes: none, frozen ones, or frozen and stopped ones. */
export type WakeOnAccess = (typeof wakesOnAccess)[number];

/** When a sandbox is ready, and how long that may take after it got a start slot. */
export interface ReadinessRule {
  readonly probe:
    | { readonly kind: 'none' }
    | { readonly kind: 'tcp'; readonly port: number }
    | { readonly kind: 'http'; readonly port: number; readonly path: string };
  readonly withinMs: number;
}

/** Limits of a sandbox; null is no limit. */
export interface SandboxResources {
  readonly cpus: number | null;
  readonly memoryBytes: number | null;
  readonly pids: number | null;
  /** Open files of one process. */
  readonly openFiles: number | null;
  readonly logBytes: number | null;
  /** Size of files that it adds or changes, outside of mounted folders. A runtime whose storage can't limit it refuses the sandbox. */
  readonly diskBytes: number | null;
}

/** How sandboxes are isolated: the settings that are common to runtimes. */
export interface SandboxIsolation {
  /** True if everything except the working directory and `/tmp` is read-only. */
  readonly readOnlyRoot: boolean;
  /** `isolated`: no other sandbox and no metadata address can be reached; `shared`: other sandboxes can; `none`: no network. */
  readonly network: 'isolated' | 'shared' | 'none';
  /** The user that its programs run as, `name` or `uid:gid`; null is the image's own. */
  readonly user: string | null;
}

/** When an idle sandbox is frozen, stopped and deleted, in milliseconds; null is never. */
export interface RestRule {
  /** From the last activity of a running sandbox to its freeze. */
  readonly freezeAfterMs: number | null;
  readonly stopAfterMs: number | null;
  readonly deleteAfterMs: number | null;
  /** From the creation (for a pool member: from its claim) to the deletion, whatever its status. */
  readonly maxLifeMs: number | null;
  /** Set by a start, not by a spec. Absent in older records. */
  readonly timeoutPause?: TimeoutPause | undefined;
}

/** The pause of a running sandbox at the end of its timeout, even if it is in use. */
export interface TimeoutPause {
  readonly kind: 'freeze' | 'stop';
  /** From the creation, in milliseconds. Null from the start of a resumption until the next timeout begins or a client sets one. */
  readonly afterMs: number | null;
  /** The timeout that begins when the sandbox was resumed, in milliseconds. Absent in older records: none begins. */
  readonly renewedMs?: number | undefined;
  /** True if such a timeout has begun, and no client has set another one since. */
  readonly isRenewed?: boolean | undefined;
  /** True if a request for a port, or another use by E2B's clients, resumes the paused sandbox, whatever `wakeOnAccess` says. */
  readonly wakesOnAccess?: boolean | undefined;
}

/** How many sandboxes of the spec are kept running for later starts. */
export interface PoolRule {
  readonly size: number;
}

/** A spec in which members with a default are optional. */
export type SandboxSpecInput = Pick<SandboxSpec, 'id'> & Partial<SandboxSpec>;

/** The limits of a sandbox unless its spec says otherwise. */
export const defaultResources: SandboxResources = {
  cpus: 2,
  memoryBytes: 2 * 2 ** 30,
  pids: 512,
  openFiles: 16_384,
  logBytes: 20 * 2 ** 20,
  diskBytes: null,
};

/** The isolation of a sandbox unless its spec says otherwise. */
export const defaultIsolation: SandboxIsolation = { readOnlyRoot: false, network: 'isolated', user: null };

/** How long a sandbox may take to be ready, unless its spec says otherwise. */
export const defaultReadyWithinMs = 60_000;

/** The variable with the sandbox's own key, unless its spec says otherwise. */
export const defaultSessionKeyEnv = 'SESSION_API_KEY';

/** Without another rule in the spec, an idle sandbox keeps running. */
export const defaultRest: RestRule = { freezeAfterMs: null, stopAfterMs: null, deleteAfterMs: null, maxLifeMs: null };

export function sandboxSpec(input: SandboxSpecInput): SandboxSpec {
  return {
    description: null,
    image: null,
    command: null,
    workingDir: '/workspace',
    initialEnv: {},
    secrets: [],
    allowedSecrets: [],
    allowPlainSecrets: false,
    sessionKeyEnv: defaultSessionKeyEnv,
    ports: [],
    wakeOnAccess: 'none',
    ready: { probe: { kind: 'none' }, withinMs: defaultReadyWithinMs },
    resources: defaultResources,
    isolation: defaultIsolation,
    runtimeOptions: {},
    labels: {},
    rest: defaultRest,
    pool: { size: 0 },
    agent: null,
    ...input,
  };
}
