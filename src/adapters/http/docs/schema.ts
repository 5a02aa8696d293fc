import { html, prose, type Content } from './html.ts';
import type { Schema } from './model.ts';

/** The type of a schema in words; what has a name of its own is linked. */
export function typeOf(schema: Schema): Content {
  if (schema.$ref !== undefined) {
    const name = schema.$ref.slice(schema.$ref.lastIndexOf('/') + 1);
    return html`<a href="#schema-${name}">${name}</a>`;
  }
  if (schema.anyOf !== undefined) return joined(schema.anyOf.map(typeOf), ' or ');
  if (schema.const !== undefined) return html`<code>${JSON.stringify(schema.const)}</code>`;
  if (schema.enum !== undefined) return joined(schema.enum.map((value) => html`<code>${String(value)}</code>`), ' or ');
  if (schema.items !== undefined) return ['list of ', typeOf(schema.items)];
  if (typeof schema.additionalProperties === 'object' && schema.properties === undefined) {
    return ['map to ', typeOf(schema.additionalProperties)];
  }
  const name = [schema.type ?? 'anything'].flat().join(' or ');
  return schema.format === undefined ? name : `${name} (${schema.format})`;
}

/** What a value of the schema has to keep to, and what it is when it is left out. */
export function limitsOf(schema: Schema): Content {
  const inner = schema.anyOf?.find(({ type }) => type !== 'null') ?? schema;
  const limits = [
    range('', inner.minimum, inner.maximum),
    range(' characters', inner.minLength, inner.maxLength),
    range(' items', inner.minItems, inner.maxItems),
    inner.pattern === undefined ? null : html`pattern <code>${inner.pattern}</code>`,
    schema.default === undefined || schema.default === null ? null : html`default <code>${JSON.stringify(schema.default)}</code>`,
  ].filter((limit) => limit !== null);
  return limits.length === 0 ? null : html`<div class="limits">${joined(limits, '; ')}</div>`;
}

/** The fields of an object as a table. */
export function fieldsOf(schema: Schema): Content {
  const fields = Object.entries(schema.properties ?? {});
  if (fields.length === 0) return html`<p>${typeOf(schema)}</p>`;
  const rows = fields.map(
    ([name, field]) => html`<tr>
<th scope="row"><code>${name}</code>${schema.required?.includes(name) === true ? null : html` <small>optional</small>`}</th>
<td>${typeOf(field)}${limitsOf(field)}</td>
<td>${prose(field.description ?? '')}</td>
</tr>`,
  );
  return html`<div class="wide"><table><thead><tr><th scope="col">Field</th><th scope="col">Type</th><th scope="col"></th></tr></thead><tbody>${rows}</tbody></table></div>`;
}

/** A value of the schema, as an example. */
export function exampleOf(schema: Schema, named: Readonly<Record<string, Schema>>): unknown {
  if (schema.$ref !== undefined) return exampleOf(named[schema.$ref.slice(schema.$ref.lastIndexOf('/') + 1)] ?? {}, named);
  if (schema.example !== undefined) return schema.example;
  if (schema.default !== undefined && schema.default !== null) return schema.default;
  const [first] = schema.anyOf ?? [];
  if (first !== undefined) return exampleOf(first, named);
  if (schema.const !== undefined) return schema.const;
  if (schema.enum !== undefined) return schema.enum[0];
  if (schema.items !== undefined) return [exampleOf(schema.items, named)];
  if (schema.properties !== undefined) {
    return Object.fromEntries(Object.entries(schema.properties).map(([name, field]) => [name, exampleOf(field, named)]));
  }
  const type = [schema.type].flat()[0];
  return type === 'integer' || type === 'number' ? 1 : type === 'boolean' ? true : type === 'object' ? {} : 'text';
}

function range(unit: string, from: number | undefined, to: number | undefined): string | null {
  if (from === undefined) return to === undefined ? null : `at most ${to}${unit}`;
  return to === undefined ? `at least ${from}${unit}` : `${from} to ${to}${unit}`;
}

export function joined(contents: readonly Content[], separator: string): Content {
  return contents.map((content, index) => (index === 0 ? content : [separator, content]));
}
