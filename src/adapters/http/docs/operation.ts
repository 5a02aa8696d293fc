import { html, prose, type Content } from './html.ts';
import type { Media, Model, Operation, Parameter, Response } from './model.ts';
import { exampleOf, fieldsOf, limitsOf, typeOf } from './schema.ts';

const phrases: Readonly<Record<string, string>> = { path: 'in the path', query: 'in the query', header: 'header' };

/** An operation: what it takes, what it answers, how it fails, and how to call it. */
export function operationSection(model: Model, path: string, method: string, operation: Operation): Content {
  const { operationId, summary, description, security, parameters = [], requestBody, responses } = operation;
  const media = Object.entries(requestBody?.content ?? {})[0];
  const [good, bad] = [answersOf(model, responses, (status) => status < 400), answersOf(model, responses, (status) => status >= 400)];
  return html`<section class="operation" id="${operationId}">
<h3><a class="anchor" href="#${operationId}">${summary}</a></h3>
<p class="call"><b class="method ${method}">${method.toUpperCase()}</b> <code>${path}</code>${security.length === 0 ? html` <small class="open">no key needed</small>` : null}</p>
${description === undefined ? null : html`<p>${prose(description)}</p>`}
${parameters.length === 0 ? null : [html`<h4>Parameters</h4>`, parameterTable(parameters)]}
${media === undefined ? null : bodySection(model, requestBody?.required === true, media[0], media[1])}
<h4>Answer</h4>${good}
<h4>Failures</h4>${bad}
<h4>Example</h4><pre><code>${curlOf(model, path, method, operation)}</code></pre>
</section>`;
}

function parameterTable(parameters: readonly Parameter[]): Content {
  const rows = parameters.map(
    ({ name, in: place, required, description = '', schema }) => html`<tr>
<th scope="row"><code>${name}</code> <small>${phrases[place] ?? place}${required === true ? '' : ', optional'}</small></th>
<td>${typeOf(schema)}${limitsOf(schema)}</td>
<td>${prose(description)}</td>
</tr>`,
  );
  return html`<div class="wide"><table><thead><tr><th scope="col">Name</th><th scope="col">Type</th><th scope="col"></th></tr></thead><tbody>${rows}</tbody></table></div>`;
}

function answersOf(model: Model, responses: Readonly<Record<string, Response>>, wanted: (status: number) => boolean): Content {
  const rows = Object.entries(responses)
    .filter(([status]) => wanted(Number(status)))
    .map(([status, response]) => {
      const contents = Object.entries(response.content ?? {});
      const headers = Object.keys(response.headers ?? {});
      return html`<tr>
<th scope="row">${status}</th>
<td>${contents.some(([, { examples }]) => examples !== undefined) ? null : prose(response.description)}${contents.map(([, media]) => examplesOf(model, media))}${headers.map((name) => html` <small>with the header <code>${name}</code></small>`)}</td>
<td>${contents.length === 0 ? 'no body' : contents.map(([media, { schema = {} }]) => html`<div>${typeOf(schema)} <small>${media}</small></div>`)}</td>
</tr>`;
    });
  return html`<div class="wide"><table><tbody>${rows}</tbody></table></div>`;
}

/** What the answer may look like: the failures by their names, or one example. */
function examplesOf({ components: { schemas } }: Model, { schema = {}, example, examples }: Media): Content {
  if (examples !== undefined) return Object.entries(examples).map(([name, { value }]) => unfolding(html`<code>${name}</code>`, value));
  if (schema.type === 'string') return null;
  return unfolding('for example', example ?? exampleOf(schema, schemas));
}

function unfolding(summary: Content, value: unknown): Content {
  return html`<details><summary>${summary}</summary><pre><code>${JSON.stringify(value, null, 2)}</code></pre></details>`;
}

function bodySection({ components: { schemas } }: Model, isNeeded: boolean, name: string, { schema = {} }: Media): Content {
  const referred = schemas[schema.$ref?.slice(schema.$ref.lastIndexOf('/') + 1) ?? ''] ?? schema;
  return html`<h4>Body</h4><p>${isNeeded ? 'Needed' : 'Optional'}, <code>${name}</code>: ${typeOf(schema)}</p>${fieldsOf(referred)}`;
}

/** A command that calls the operation, with an example of everything that it has to be told. */
function curlOf({ servers, components: { schemas } }: Model, path: string, method: string, operation: Operation): string {
  const { parameters = [], requestBody, responses, security } = operation;
  const filled = parameters
    .filter((parameter) => parameter.in === 'path')
    .reduce((text, { name, schema }) => text.replace(`{${name}}`, String(exampleOf(schema, schemas))), path);
  const streams = Object.values(responses).some(({ content = {} }) => Object.keys(content).some((name) => name.startsWith('text/event-stream')));
  const [media, { schema } = {}] = Object.entries(requestBody?.content ?? {})[0] ?? [];
  const lines = [
    `curl ${streams ? '-N ' : ''}${method === 'get' ? '' : `-X ${method.toUpperCase()} `}'${servers[0]?.url.replace(/\/$/, '') ?? ''}${filled}'`,
    ...(security.length === 0 ? [] : [`-H "X-Session-API-Key: $SKEP_API_KEY"`]),
    ...(media === undefined ? [] : [`-H 'Content-Type: ${media}'`, `-d '${JSON.stringify(exampleOf(schema ?? {}, schemas)).replaceAll("'", String.raw`'\''`)}'`]),
  ];
  return lines.join(' \\\n  ');
}
