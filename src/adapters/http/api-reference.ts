import { hash } from 'node:crypto';
import { createRequire } from 'node:module';
import { basename, dirname } from 'node:path';
import { contentSecurityPolicy } from './dashboard.ts';
import type { HttpHandler } from './request-context.ts';

const require = createRequire(import.meta.url);

const script = 'docs/swagger-ui-bundle.js';
const styles = 'docs/swagger-ui.css';

export const apiReferencePaths = [`/${script}`, `/${styles}`];

export function apiReferenceFiles(): HttpHandler {
  const root = dirname(require.resolve('swagger-ui-dist/package.json'));
  return ({ path }, response) => response.sendFile(basename(path), { root, headers: { 'Cache-Control': 'no-cache' } });
}

/** "Try it out" sends requests to the page's origin. The filter searches operations; Swagger UI's own filter only searches tags. */
const start = `
const textOf = (operation) => ['method', 'path', 'operation.summary', 'operation.operationId']
  .map((key) => operation.getIn(key.split('.'), '')).join(' ').toLowerCase();
const found = (phrase) => (operations) => operations.filter((operation) => textOf(operation).includes(phrase.toLowerCase()));
const opsFilter = (tags, phrase) => tags
  .map((tag) => tag.update('operations', found(phrase)))
  .filter((tag) => tag.get('operations').size > 0);
const response = await fetch('openapi.json');
const spec = await response.json();
document.title = spec.info.title + ': API reference';
spec.servers = [{ url: new URL('.', location.href).href.replace(/[/]$/, ''), description: 'Where this page comes from.' }];
SwaggerUIBundle({ spec, dom_id: '#reference', filter: true, deepLinking: true, validatorUrl: null, plugins: [{ fn: { opsFilter } }] });
`;

// Swagger UI sets style attributes.
const policy = contentSecurityPolicy(` 'sha256-${hash('sha256', start, 'base64')}'`, " 'unsafe-inline'");

export const apiReferenceHeaders = { 'Content-Security-Policy': policy };

/** The page at `/docs`. Its links are relative, so it works under any mount path. */
export const apiReferencePage = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>API reference</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="${styles}">
</head>
<body>
<div id="reference"></div>
<noscript>This page needs JavaScript. The same is in <a href="openapi.json">the OpenAPI document</a>.</noscript>
<script src="${script}"></script>
<script type="module">${start}</script>
</body>
</html>
`;
