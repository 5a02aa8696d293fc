import { Commits, Projects, Repositories } from '@gitbeaker/rest';
import { isJson, type Answer } from './answer.ts';
import { failed, malformed } from './failures.ts';
import type { HostUrl } from './host-url.ts';
import { jsonOrNull } from './json.ts';
import { nextPage } from './page.ts';
import { isInside } from './redirect.ts';
import { Refusal } from './refusal.ts';
import type { Transport } from './transport.ts';

/** The client for the API, with a requester of its own. Rejects with a {@link Refusal} where the host refuses. */
export interface Client {
  readonly commits: Commits;
  readonly projects: Projects;
  readonly repositories: Repositories;
  /** Asks for what the client has no method for. */
  readonly get: (endpoint: string) => Promise<unknown>;
}

type ResourceOptions = ConstructorParameters<typeof Projects>[0];
type Requester = ReturnType<NonNullable<ResourceOptions['requesterFn']>>;
type Get = Requester['get'];
type Query = Readonly<Record<string, string | number | boolean | undefined>>;

/** The client whose requests end when the signal fires. */
export function createClient(transport: Transport, host: HostUrl, signal: AbortSignal): Client {
  async function get(endpoint: string, query: Query = {}): Promise<{ body: unknown; headers: Record<string, string>; status: number }> {
    const answer = await transport.get(urlOf(host, endpoint, query), signal);
    if (answer.status < 200 || answer.status > 299) throw new Refusal(answer);
    return { body: bodyOf(answer, host), headers: {}, status: answer.status };
  }

  const requester: Requester = {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- what comes is checked where it is read
    get: ((endpoint: string, options?: { readonly searchParams?: Query }) => get(endpoint, options?.searchParams)) as Get,
    post: refuse,
    put: refuse,
    patch: refuse,
    delete: refuse,
  };
  const options = { host: host.origin, queryTimeout: null, requesterFn: () => requester };
  return {
    commits: new Commits(options),
    projects: new Projects(options),
    repositories: new Repositories(options),
    get: async (endpoint) => (await get(endpoint)).body,
  };
}

function refuse(): Promise<never> {
  return Promise.reject(new Error('this client only reads'));
}

/** Throws where a name in the endpoint would lead elsewhere. */
function urlOf(host: HostUrl, endpoint: string, query: Query): URL {
  const path = `${host.apiPath}/${endpoint}`;
  const url = new URL(`${host.origin}${path}`);
  if (!isInside(url, host) || url.pathname !== path) throw failed('a name can not be asked for');
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined) url.searchParams.set(toSnakeCase(name), String(value));
  }
  return url;
}

function toSnakeCase(name: string): string {
  return name.replaceAll(/[A-Z]/gu, (letter) => `_${letter.toLowerCase()}`);
}

/** A list goes to the client as a page, which it takes for one object: so it follows no link by itself. */
function bodyOf(answer: Answer, host: HostUrl): unknown {
  if (!isJson(answer)) throw failed("it does not answer with JSON; check that its URL is that of a GitLab");
  const body = jsonOrNull(answer.text);
  if (body === null) throw malformed('what was asked');
  return Array.isArray(body) ? { items: body, next: nextPage(answer, host) } : body;
}
