import { signal } from '@preact/signals';
import { type api, createClient, isFailure, type SkepClient } from '../client/index.ts';
import { deleteDrafts, keepDraftsOf } from './drafts.ts';
import { route } from './route.ts';

export interface Session {
  readonly client: SkepClient;
  readonly me: api.Caller;
}

/** The logged-in user; null shows the login. */
export const session = signal<Session | null>(null);
/** The reason for the login page, as a sentence. */
export const loginNotice = signal<string | null>(null);
/** Whether the last request reached the server. */
export const isOnline = signal(true);

const storedKey = 'skep.key';
/** The key of this tab, otherwise of the browser. */
const keptKey = () => sessionStorage.getItem(storedKey) ?? localStorage.getItem(storedKey) ?? undefined;
/** The API has the address of the page, also below a path prefix. */
const url = new URL('.', location.href).href;

export async function logIn(key: string, isRemembered: boolean): Promise<void> {
  const entered = await enter(key);
  // Otherwise an earlier key of this tab would be found first.
  sessionStorage.removeItem(storedKey);
  (isRemembered ? localStorage : sessionStorage).setItem(storedKey, key);
  loginNotice.value = null;
  session.value = entered;
}

/** Without a key, for deployments that identify callers in another way. */
async function enter(key?: string): Promise<Session> {
  const client = clientWith(key);
  const me = await client.request('GET /api/v1/me');
  keepDraftsOf(me.user_id);
  return { client, me };
}

/** Returns the code of the login link that is the page's address; null if it is another address. */
export function loginCode(): string | null {
  const [page, code] = route.value.path;
  return page === 'login' && code !== undefined ? code : null;
}

/** Logs in with the stored key. Another tab may change it meanwhile; then this tab follows that change. */
export async function resumeSession(): Promise<void> {
  const key = keptKey();
  const entered = await enter(key).catch((error: unknown) => {
    if (key !== undefined || !isFailure(error, 'unauthorized')) throw error;
    return null;
  });
  if (key === keptKey()) session.value = entered;
}

/** Logs out, or in with another key, as another tab of the browser did. A key of this tab only stays. */
export async function followOtherTab({ key }: StorageEvent): Promise<void> {
  if (key !== storedKey || sessionStorage.getItem(storedKey) !== null) return;
  session.value = null;
  loginNotice.value = null;
  if (keptKey() === undefined) deleteDrafts();
  else await resumeSession();
}

/** Logs in with the code of a link. Keeps the earlier session if the code is not valid. */
export async function logInWithLink(code: string): Promise<void> {
  // The code must not stay in the browser's history, although it expires soon.
  history.replaceState(null, '', '#/');
  route.value = { path: [], query: new URLSearchParams() };
  const { key } = await clientWith().request('POST /api/v1/login', { body: { code } }).catch(async (error: unknown) => {
    // The page may have been opened with the link.
    if (session.value === null) await resumeSession();
    throw error;
  });
  await logIn(key, true);
}

export function logOut(): void {
  deleteDrafts();
  localStorage.removeItem(storedKey);
  sessionStorage.removeItem(storedKey);
  session.value = null;
}

function clientWith(key?: string): SkepClient {
  return createClient({ url, key, retryForMs: 8000, reconnectForMs: Infinity, fetch: observedFetch });
}

async function observedFetch(input: RequestInfo | URL, init?: RequestInit): Promise<Response> {
  try {
    const response = await fetch(input, init);
    // A 502 or 504 without a JSON body comes from a proxy before the server.
    isOnline.value = ![502, 504].includes(response.status) || /json/.test(response.headers.get('Content-Type') ?? '');
    if (response.status === 401 && session.value !== null) {
      // The address and the drafts stay, so the next login of the same user goes on here.
      loginNotice.value = 'Your key is no longer valid: it was revoked, or has expired. Log in with another one to go on here.';
      session.value = null;
    }
    return response;
  } catch (error) {
    if (!(error instanceof DOMException && error.name === 'AbortError')) isOnline.value = false;
    throw error;
  }
}

/** Returns the session, for pages that need a login. */
export function currentSession(): Session {
  if (session.value === null) throw new Error('Nobody is logged in.');
  return session.value;
}

export function canChange(): boolean {
  return currentSession().me.access !== 'read';
}
