import { z } from 'zod';
import type { Skep } from '../../application/skep.ts';
import { Failure } from '../../domain/failure.ts';
import { parameterLimits } from '../../domain/sandbox-parameters.ts';
import type { SandboxSpec } from '../../domain/sandbox-spec.ts';
import { pauseOf, type Sandbox } from '../../domain/sandbox.ts';
import { claimOf, idempotencyHeaders, toTimestamp } from '../http/common-schemas.ts';
import { pageQuery, readPage } from '../http/page-token.ts';
import type { RequestContext } from '../http/request-context.ts';
import { parsed, readHeaders, readQuery } from '../http/request-input.ts';
import { claimedParameters, sandboxParameterFields } from '../http/sandbox-parameters.ts';
import { ConnectError } from './connect-protocol.ts';
import { envdVersion, limitsOf, presentConnection, presentLimits, presentListed, stateOf } from './presenter.ts';

/** The default template of E2B's clients. It means the deployment's default spec, unless a spec has this name. */
const defaultTemplate = 'base';

/** The default timeout of a start and a resumption, in seconds. The spec can limit that of a start further. */
const defaultTimeoutSeconds = 300;

/** Returns the error for a request of a feature that Skep does not have. */
export function unsupported(what: string, instead = 'docs/e2b.md lists what works.'): ConnectError {
  return new ConnectError('unimplemented', `Skep has no ${what} for E2B's clients. ${instead}`);
}

/** 0 ends the sandbox at once. As in E2B, a sandbox can't begin with it. */
const seconds = z.int().min(0).max(parameterLimits.timeoutSeconds);
const { env, metadata } = sandboxParameterFields;

const createBody = z.looseObject({
  templateID: z.string().min(1), timeout: seconds.min(1).optional(), metadata, envVars: env,
  autoPause: z.boolean().nullish(), autoPauseMemory: z.boolean().nullish(),
  autoResume: z.object({ enabled: z.boolean() }).nullish(),
});

/** Options of a start that Skep does not support, with their names for the error. */
const unsupportedOptions: Readonly<Record<string, string>> = {
  allow_internet_access: 'choice of internet access', iam: 'identities', mcp: 'MCP gateway', volumeMounts: 'volumes',
};

function requireSupported(body: z.output<typeof createBody>, spec: SandboxSpec): void {
  requireNetwork(body['network'], spec);
  for (const [option, what] of Object.entries(unsupportedOptions)) {
    const value = body[option];
    // Internet access is the default.
    if (value == null || (value === true && option === 'allow_internet_access')) continue;
    throw unsupported(what, 'Set it in the sandbox spec, or leave it out.');
  }
}

const publicNetwork = z.strictObject({ allowPublicTraffic: z.literal(true) });

/** A client can say that ports need no key. Then this must be so for each port of the spec. */
function requireNetwork(network: unknown, { ports }: SandboxSpec): void {
  if (network == null) return;
  if (!publicNetwork.safeParse(network).success) throw unsupported('choice of the network', 'Set it in the sandbox spec, or leave it out.');
  const closed = ports.filter((port) => port.public !== true).map(({ port }) => port);
  if (closed.length === 0) return;
  throw unsupported('choice of public ports', `Set public: true in the sandbox spec for the ports it names: ${closed.join(', ')}.`);
}

/** Returns the body of the response to a request with a JSON body. Undefined means no body. Sets the status if it is not 200. */
type Handler = (request: { readonly context: RequestContext; readonly id: string; readonly body: unknown }) => Promise<unknown>;

/** Returns the spec that the template's name means. Undefined if there is none. */
function findSpec({ specs }: Pick<Skep, 'specs'>, template: string): SandboxSpec | undefined {
  return specs.find(template) ?? (template === defaultTemplate ? specs.find(null) : undefined);
}

function requireSpec(skep: Pick<Skep, 'specs'>, template: string): SandboxSpec {
  const spec = findSpec(skep, template);
  if (spec !== undefined) return spec;
  throw new ConnectError('not_found', `There is no template ${JSON.stringify(template)}. A template is a sandbox spec of the deployment.`);
}

const create: Handler = async ({ context, body: unchecked }) => {
  const { skep, principal } = context;
  const body = parsed(createBody, 'body', unchecked);
  const { templateID, timeout, envVars, metadata, autoPause, autoPauseMemory, autoResume } = body;
  const spec = requireSpec(skep, templateID);
  requireSupported(body, spec);
  const { id: specId, rest } = spec;
  const maxLifeMs = rest.maxLifeMs ?? Infinity;
  const timeoutMs = timeout === undefined ? Math.min(defaultTimeoutSeconds * 1000, maxLifeMs) : timeout * 1000;
  const wakesOnAccess = autoResume?.enabled === true;
  const pauseAtTimeout = autoPause !== true ? undefined : {
    kind: autoPauseMemory === false ? 'stop' : 'freeze',
    renewedMs: Math.max(timeoutMs, defaultTimeoutSeconds * 1000),
    wakesOnAccess,
  } as const;
  if (wakesOnAccess && pauseAtTimeout === undefined) {
    throw new ConnectError('invalid_argument', 'With autoResume, the sandbox must be paused at the end of its timeout (autoPause).');
  }
  const parameters = { env: envVars ?? undefined, metadata: metadata ?? undefined, timeoutMs, pauseAtTimeout };
  const headers = readHeaders(idempotencyHeaders, context.request.headers);
  const claim = claimOf(headers, principal.userId, 'e2b_create_sandbox', { specId, ...claimedParameters(parameters) });
  const { id } = await skep.sandboxes.start(principal.userId, { specId, parameters, ...claim });
  context.sandboxId = id;
  const sandbox = await skep.sandboxes.awaitRunning(context.principal, id, context.closed);
  context.response.status(201);
  return presentConnection(context, sandbox);
};

const connectBody = z.object({ timeout: seconds.optional(), memory: z.boolean().optional() });

/**
 * Returns the maximum life of a paused sandbox if it is not what a client asked for, so a new timeout can be shorter. Otherwise undefined.
 * It can be the maximum of its spec: if a user paused it, because that removed the timeout; if Skep did, a client can have asked for that.
 */
function replaceableLifeMs({ specs }: Pick<Skep, 'specs'>, sandbox: Sandbox): number | null | undefined {
  const { spec: { id, rest: { maxLifeMs, timeoutPause } } } = sandbox;
  // The resumption ends the timeout. One that begins by itself afterwards can be shorter too.
  if (timeoutPause !== undefined) return null;
  const isOfSpec = maxLifeMs === (specs.find(id)?.rest.maxLifeMs ?? null) && pauseOf(sandbox)?.actor === 'user';
  return maxLifeMs === null || isOfSpec ? maxLifeMs : undefined;
}

/**
 * Resumes the sandbox if it is paused, and waits for a start. A timeout that a client has set can only become longer, as far as its spec
 * allows.
 */
const connect: Handler = async ({ context, id, body }) => {
  const { skep, principal, http } = context;
  const { timeout } = parsed(connectBody, 'body', body);
  const found = await skep.sandboxes.get(principal, id);
  const runs = found.status === 'RUNNING' || found.status === 'STARTING';
  const timeoutMs = (timeout ?? (runs ? 0 : defaultTimeoutSeconds)) * 1000;
  // A timeout that the sandbox has kept must not end while it is resumed.
  await skep.sandboxes.extendTimeout(principal, id, timeoutMs);
  if (!runs) await skep.sandboxes.resume(principal, id);
  // A client uses the sandbox at once, so it must run, also if the resumption takes longer than a request usually does.
  const sandbox = found.status === 'RUNNING' ? found : await skep.sandboxes.awaitRunning(principal, id, http.ending);
  // A new timeout begins now, also if the client is gone: before, it could delete the sandbox while it is resumed, or if that fails.
  if (!runs) await skep.sandboxes.extendTimeout(principal, id, timeoutMs, replaceableLifeMs(skep, found));
  context.response.status(runs ? 200 : 201);
  return presentConnection(context, sandbox);
};

const listQuery = z.object({
  limit: pageQuery.limit, nextToken: pageQuery.page_id, metadata: z.string().optional(),
  state: z.union([z.string(), z.array(z.string())]).optional(), template: z.string().optional(),
  startedAfter: z.iso.datetime({ offset: true }).optional(), order: z.enum(['asc', 'desc']).default('desc'),
});

const list: Handler = async ({ context }) => {
  const { skep, principal } = context;
  const { limit, nextToken, state, template, startedAfter, order, ...query } = readQuery(listQuery, context.query);
  const states = new Set([state ?? ['running', 'paused']].flat().flatMap((text) => text.split(',')));
  const metadata = query.metadata === undefined ? {} : decodeMetadata(query.metadata);
  const specId = template && (findSpec(skep, template)?.id ?? template);
  const { items, next_page_id: next } = await readPage(context, `e2b-sandboxes/${order}`, { page_id: nextToken, limit }, (request) =>
    skep.sandboxes.search(principal, { specId, metadata, oldestFirst: order === 'asc' }, request), (sandbox) => sandbox);
  const since = startedAfter === undefined ? -Infinity : Date.parse(startedAfter);
  const shown = items.filter((sandbox) => states.has(stateOf(sandbox) ?? '') && sandbox.createdAt >= since);
  if (next !== null) context.response.set('X-Next-Token', next);
  return shown.map((sandbox) => presentListed(skep, sandbox));
};

/** Lists the specs as templates. The deployment has few, so there are no pages. */
const listTemplates: Handler = async ({ context: { skep } }) => {
  const { items } = await skep.specs.search(null, Infinity);
  return items.map(({ spec, createdAt }) => ({
    templateID: spec.id, aliases: [spec.id], names: [spec.id], public: false, ...presentLimits(skep, spec), envdVersion,
    createdAt: toTimestamp(createdAt), createdBy: null,
  }));
};

/** Clients ask whether a template exists before they build it. */
const findTemplate: Handler = async ({ context: { skep }, id }) => ({ templateID: requireSpec(skep, id).id, public: false });

/** Decodes the metadata. It is a query string inside the query, so names and values are encoded twice. */
function decodeMetadata(text: string): Record<string, string> {
  const pairs = [...new URLSearchParams(text)];
  try {
    return Object.fromEntries(pairs.map(([name, value]) => [decodeURIComponent(name), decodeURIComponent(value)]));
  } catch {
    throw new ConnectError('invalid_argument', 'The metadata must be percent-encoded.');
  }
}

const info: Handler = async ({ context, id }) => {
  const sandbox = await context.skep.sandboxes.get(context.principal, id);
  const { timeoutPause } = sandbox.spec.rest;
  const lifecycle = { onTimeout: timeoutPause === undefined ? 'kill' : 'pause', autoResume: timeoutPause?.wakesOnAccess === true };
  return { ...presentListed(context.skep, sandbox), ...presentConnection(context, sandbox), lifecycle };
};

const kill: Handler = async ({ context, id }) => {
  const { skep, principal } = context;
  await skep.sandboxes.get(principal, id);
  await skep.sandboxes.delete(principal, id);
};

const setTimeout: Handler = async ({ context, id, body }) => {
  const { timeout } = parsed(z.object({ timeout: seconds }), 'body', body);
  // The end of a timeout is an act of Skep, this one is the caller's.
  if (timeout === 0) await kill({ context, id, body });
  else await context.skep.sandboxes.setTimeout(context.principal, id, timeout * 1000);
};

/** Pauses the sandbox without its timeout. Throws if it is already paused, as E2B does, so clients know that it did nothing else. */
const pause: Handler = async ({ context, id, body }) => {
  const { skep: { sandboxes }, principal } = context;
  const { memory } = parsed(connectBody, 'body', body);
  const isPaused = (await sandboxes.get(principal, id)).status === 'PAUSED';
  await sandboxes.pause(principal, id, memory === false && !isPaused ? 'stop' : undefined, { removesTimeout: true });
  if (isPaused) throw new Failure('sandbox_not_running', { id, status: 'PAUSED' });
};

const metrics: Handler = async ({ context, id }) => {
  const { skep, principal } = context;
  const { spec } = await skep.sandboxes.get(principal, id);
  const { cpus, memoryBytes: memoryLimit, diskBytes: diskLimit } = limitsOf(skep, spec);
  const { cpuPercent, memoryBytes, memoryLimitBytes, diskBytes } = await skep.sandboxes.usage(principal, id);
  const now = skep.clock.now();
  return [{
    timestamp: toTimestamp(now), timestampUnix: Math.floor(now / 1000), cpuCount: cpus, cpuUsedPct: cpuPercent ?? 0,
    memUsed: memoryBytes ?? 0, memTotal: memoryLimitBytes ?? memoryLimit, memCache: 0, diskUsed: diskBytes ?? 0,
    diskTotal: diskLimit,
  }];
};

const refuse = (what: string): Handler => async () => {
  throw unsupported(what);
};

/** A route of the control API. Every method except GET changes something. */
export interface ControlRoute {
  readonly method: 'get' | 'post' | 'put' | 'delete';
  readonly paths: readonly string[];
  readonly handle: Handler;
}

export const controlRoutes: readonly ControlRoute[] = [
  { method: 'post', paths: ['/v2/sandboxes', '/sandboxes'], handle: create },
  { method: 'get', paths: ['/v2/sandboxes', '/sandboxes'], handle: list },
  { method: 'post', paths: ['/v2/sandboxes/:id/connect', '/sandboxes/:id/connect', '/sandboxes/:id/resume'], handle: connect },
  { method: 'get', paths: ['/sandboxes/:id'], handle: info },
  { method: 'delete', paths: ['/sandboxes/:id'], handle: kill },
  { method: 'post', paths: ['/sandboxes/:id/timeout'], handle: setTimeout },
  { method: 'post', paths: ['/sandboxes/:id/pause'], handle: pause },
  { method: 'get', paths: ['/sandboxes/:id/metrics'], handle: metrics },
  { method: 'post', paths: ['/sandboxes/:id/snapshots'], handle: refuse('snapshots') },
  { method: 'get', paths: ['/snapshots'], handle: refuse('snapshots') },
  { method: 'get', paths: ['/sandboxes/:id/logs', '/v2/sandboxes/:id/logs'], handle: refuse('logs of sandboxes') },
  { method: 'get', paths: ['/templates'], handle: listTemplates },
  { method: 'post', paths: ['/v3/templates', '/v2/templates', '/templates'], handle: refuse('template builds') },
  { method: 'get', paths: ['/templates/aliases/:id'], handle: findTemplate },
  { method: 'post', paths: ['/sandboxes/:id/fork'], handle: refuse('forks') },
  { method: 'put', paths: ['/sandboxes/:id/network'], handle: refuse('change of the network') },
];
