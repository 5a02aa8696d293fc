import type { OpenApiDocument } from '../openapi/document.ts';
import { html, prose } from './html.ts';
import { Model } from './model.ts';
import { operationSection } from './operation.ts';
import { fieldsOf } from './schema.ts';
import { style } from './style.ts';

/**
 * The OpenAPI document as a page for people: it needs no script, and nothing from anywhere else. `source` is
 * where the document itself is found.
 */
export function docsPage(document: OpenApiDocument, source: string): string {
  const model = Model.parse(document);
  const { info, servers, tags, components } = model;
  const schemas = Object.entries(components.schemas).toSorted(([a], [b]) => (a < b ? -1 : 1));
  const page = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${info.title}: HTTP interface</title>
${style}
</head>
<body>
<nav aria-label="Contents">
<p class="title"><a href="#top">${info.title}</a> <small>${info.version}</small></p>
${tags.map(({ name }) => html`<h2>${name}</h2><ul>${operationsOf(model, name).map(({ operation: { operationId, summary }, method }) => html`<li><a href="#${operationId}"><b class="method ${method}">${method}</b> ${summary}</a></li>`)}</ul>`)}
<h2>Schemas</h2><ul>${schemas.map(([name]) => html`<li><a href="#schema-${name}">${name}</a></li>`)}</ul>
</nav>
<main id="top">
<h1>${info.title} <small>${info.version}</small></h1>
<p>${prose(info.description)}</p>
<p>An API key goes in the header <code>X-Session-API-Key</code>. Bodies are JSON in UTF-8, times are RFC 3339 in UTC. A failure is a <a href="#schema-Problem">Problem</a> with a <code>code</code> for programs; a request that is not of the form is answered with an <a href="#schema-HTTPValidationError">HTTPValidationError</a> that names each place. The whole as an OpenAPI 3.1 document: <a href="${source}"><code>${source}</code></a>.</p>
<ul>${servers.map(({ url, description }) => html`<li><code>${url}</code> ${description}</li>`)}</ul>
${tags.map(({ name, description }) => html`<h2>${name}</h2><p>${prose(description)}</p>${operationsOf(model, name).map(({ path, method, operation }) => operationSection(model, path, method, operation))}`)}
<h2>Schemas</h2>
${schemas.map(([name, schema]) => html`<section class="schema" id="schema-${name}"><h3><a class="anchor" href="#schema-${name}">${name}</a></h3>${schema.description === undefined ? null : html`<p>${prose(schema.description)}</p>`}${fieldsOf(schema)}</section>`)}
</main>
</body>
</html>
`;
  return page.text;
}

function operationsOf({ paths }: Model, tag: string) {
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods)
      .filter(([, operation]) => operation.tags.includes(tag))
      .map(([method, operation]) => ({ path, method, operation })),
  );
}
