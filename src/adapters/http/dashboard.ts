import { existsSync, readdirSync } from 'node:fs';
import { join, relative, resolve, sep } from 'node:path';
import express, { Router } from 'express';
import helmet from 'helmet';
import type { HttpHandler } from './request-context.ts';

/** The path of files with a content hash in their name, from Vite. */
const hashedFiles = '/assets/';

/** Lets the page load its own files and talk to its own origin only, WebSockets included. */
const contentSecurityPolicy = helmet.contentSecurityPolicy({
  useDefaults: false,
  directives: {
    defaultSrc: ["'none'"],
    scriptSrc: ["'self'"],
    styleSrc: ["'self'"],
    imgSrc: ["'self'", 'data:'],
    connectSrc: ["'self'"],
    fontSrc: ["'self'"],
    baseUri: ["'none'"],
    formAction: ["'none'"],
    frameAncestors: ["'none'"],
  },
});

/** Returns the folder of the dashboard in the package. Returns null if it was not built. */
export function dashboardFolder(): string | null {
  // The root of the package, or its `dist` folder if this module is in it.
  const root = join(import.meta.dirname, '../../..');
  return ['dist/dashboard', 'dashboard'].map((name) => join(root, name)).find((folder) => existsSync(join(folder, 'index.html'))) ?? null;
}

/**
 * Serves the page at `/` and its files without a key. Without a folder, `/` redirects to the API reference. The files are listed once, so
 * API requests do not read the disk.
 */
export function dashboardRouter(folder: string | null): Router {
  const router = Router({ caseSensitive: true, strict: true });
  const files = new Set(folder === null ? [] : ['/', ...pathsBelow(folder)]);
  const serve = express.static(folder ?? '.', {
    redirect: false,
    setHeaders: (response, path) => {
      const isHashed = folder !== null && `/${relative(folder, path)}`.replaceAll(sep, '/').startsWith(hashedFiles);
      response.setHeader('Cache-Control', isHashed ? 'public, max-age=31536000, immutable' : 'no-cache');
    },
  });
  const handle: HttpHandler = (request, response, next) => {
    if ((request.method !== 'GET' && request.method !== 'HEAD') || !(request.path === '/' || files.has(request.path))) return next();
    const { context } = response.locals;
    if (folder === null) return response.redirect(context.link('/docs'));
    // The page's links are relative, so its own address must end with a slash.
    if (request.path === '/' && !withoutQuery(request.originalUrl).endsWith('/')) return response.redirect(context.link('/'));
    contentSecurityPolicy(request, response, () => serve(request, response, next));
  };
  router.use(handle);
  return router;
}

function pathsBelow(folder: string): string[] {
  const entries = readdirSync(resolve(folder), { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile())
    .map((entry) => `/${relative(resolve(folder), join(entry.parentPath, entry.name))}`.replaceAll(sep, '/'));
}

function withoutQuery(url: string): string {
  return url.split('?', 1)[0] ?? url;
}
