import { createPublicKey, verify } from 'node:crypto';
import { refusal, type DoubleRequest, type DoubleResponse } from './request.ts';

/** A GitHub App, and its installation. */
export interface DoubleApp {
  readonly appId: string;
  readonly installationId: number;
  /** A key in PEM format. The private key works too. */
  readonly key: string;
}

/** The accepted credentials. */
export interface Access {
  readonly tokens: Set<string>;
  app: DoubleApp | null;
}

/** Returns whether the request has a credential, or the response to a wrong one. */
export function authenticate({ headers, isGraphql }: DoubleRequest, { tokens }: Access): boolean | DoubleResponse {
  const header = headers['authorization'];
  if (header === undefined) return isGraphql ? refusal(401, 'This endpoint requires you to be authenticated.') : false;
  const token = /^(?:token|bearer) (\S+)$/iu.exec(header)?.[1];
  return token !== undefined && tokens.has(token) ? true : refusal(401, 'Bad credentials');
}

/** Returns a token for the App's installation if the request is signed. */
export function installationToken({ headers, segments }: DoubleRequest, access: Access): DoubleResponse {
  const { app, tokens } = access;
  const jwt = /^bearer (\S+)$/iu.exec(headers['authorization'] ?? '')?.[1];
  if (app === null || jwt === undefined || !isSigned(jwt, app)) return refusal(401, 'A JSON web token could not be decoded');
  if (segments[2] !== String(app.installationId)) return refusal(404, 'Not Found');
  const token = `ghs_installation${tokens.size}`;
  tokens.add(token);
  const expires_at = new Date(Date.now() + 3_600_000).toISOString();
  return { status: 201, body: { token, expires_at, permissions: { contents: 'read', metadata: 'read' }, repository_selection: 'all' } };
}

function isSigned(jwt: string, { appId, key }: DoubleApp): boolean {
  const [header = '', payload = '', signature = ''] = jwt.split('.');
  const claims: unknown = JSON.parse(Buffer.from(payload, 'base64url').toString());
  const isOfApp = typeof claims === 'object' && claims !== null && 'iss' in claims && String(claims.iss) === appId;
  return isOfApp && verify('RSA-SHA256', Buffer.from(`${header}.${payload}`), createPublicKey(key), Buffer.from(signature, 'base64url'));
}
