import { signal } from '@preact/signals';
import { type api, createClient, isFailure, type SkepClient } from '../client/index.ts';
import { route } from './route.ts';
import { texts } from './texts.ts';

export interface Session {
  readonly client: SkepClient;
  readonly me: api.Caller;
}

/** Who uses the page; null shows the login. */
export const session = signal<Session | null>(null);
/** Why the login is shown, as a sentence. */
export const loginNotice = signal<string | null>(null);
/** Whether the last request reached the server. */
export const isOnline = signal(true);

const storedKey = 'skep.key';
/** The API is where the page is, also below a prefix. */
const url = new URL('.', location.href).href;

export async function logIn(key: string, isRemembered: boolean): Promise<void> {
  const client = clientWith(key);
  const me = await client.request('GET /api/v1/me');
  (isRemembered ? localStorage : sessionStorage).setItem(storedKey, key);
  loginNotice.value = null;
  session.value = { client, me };
}

/** Logs in by the link that the server printed, or by the key of the last visit. */
export async function resumeSession(): Promise<void> {
  const [page, code] = route.value.path;
  const key = sessionStorage.getItem(storedKey) ?? localStorage.getItem(storedKey);
  if (page === 'login' && code !== undefined) {
    // The code is worthless soon, but has no business in the history.
    history.replaceState(null, '', '#/');
    route.value = { path: [], query: new URLSearchParams() };
    const made = await clientWith().request('POST /api/v1/login', { body: { code } });
    await logIn(made.key, true);
  } else if (key !== null) {
    await logIn(key, sessionStorage.getItem(storedKey) === null);
  } else {
    await enterWithoutKey();
  }
}

/** A deployment may know its callers without a key. */
async function enterWithoutKey(): Promise<void> {
  const client = clientWith();
  try {
    session.value = { client, me: await client.request('GET /api/v1/me') };
  } catch (error) {
    if (!isFailure(error, 'unauthorized')) throw error;
  }
}

/** Forgets the key. The address stays, so the next login leads back to it. */
export function logOut(notice: string | null = null): void {
  localStorage.removeItem(storedKey);
  sessionStorage.removeItem(storedKey);
  loginNotice.value = notice;
  session.value = null;
}

function clientWith(key?: string): SkepClient {
  return createClient({ url, key, retryForMs: 8000, reconnectForMs: Infinity, fetch: observedFetch });
}

async function observedFetch(input: RequestInfo | URL, init?: RequestInit): Promise<Response> {
  try {
    const response = await fetch(input, init);
    // Without a body of Skep's, they are those of a proxy before it.
    isOnline.value = ![502, 504].includes(response.status) || /json/.test(response.headers.get('Content-Type') ?? '');
    if (response.status === 401 && session.value !== null) logOut(texts.login.revoked);
    return response;
  } catch (error) {
    if (!(error instanceof DOMException && error.name === 'AbortError')) isOnline.value = false;
    throw error;
  }
}

/** The session of a page that is shown only with one. */
export function currentSession(): Session {
  if (session.value === null) throw new Error('Nobody is logged in.');
  return session.value;
}

export function canChange(): boolean {
  return currentSession().me.access !== 'read';
}
