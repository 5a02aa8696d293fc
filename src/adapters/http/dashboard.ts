import { existsSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { join, relative, sep } from 'node:path';
import express, { type Router } from 'express';
import type { HttpHandler } from './request-context.ts';

/** Returns the policy of a page that loads its own files and talks to its own origin only. `scripts` and `styles` are further sources. */
export const contentSecurityPolicy = (scripts = '', styles = ''): string => [
  "default-src 'none'", `script-src 'self'${scripts}`, `style-src 'self'${styles}`, "img-src 'self' data:", "connect-src 'self'",
  "font-src 'self'", "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'",
].join(';');

/** Returns the folder of the dashboard in the package. Returns null if it was not built. */
export function dashboardFolder(): string | null {
  // The root of the package, or its `dist` folder if this module is in it.
  const root = join(import.meta.dirname, '../../..');
  return ['dist/dashboard', 'dashboard'].map((name) => join(root, name)).find((folder) => existsSync(join(folder, 'index.html'))) ?? null;
}

/** Serves the page at `/` and its files without a key. Without a folder, `/` redirects to the API reference. */
export function addDashboard(router: Router, folder: string | null): void {
  const atRoot: HttpHandler = ({ originalUrl }, response, next) => {
    const { context } = response.locals;
    if (folder === null) response.redirect(context.link('/docs'));
    // The page's links are relative, so its own address must end with a slash.
    else if (!/^[^?]*\/(?:\?|$)/.test(originalUrl)) response.redirect(context.link('/'));
    else next();
  };
  router.get('/', atRoot);
  if (folder === null) return;
  const setHeaders = (response: ServerResponse, path: string): void => {
    // Vite puts files with a content hash in their name there.
    const isHashed = relative(folder, path).startsWith(`assets${sep}`);
    response.setHeader('Cache-Control', isHashed ? 'public, max-age=31536000, immutable' : 'no-cache');
    response.setHeader('Content-Security-Policy', contentSecurityPolicy());
  };
  router.get(/^\/(?!\/)/, express.static(folder, { redirect: false, setHeaders }));
}
