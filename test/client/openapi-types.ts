// Makes TypeScript types of our OpenAPI document, with only the forms that it has. Decision record 39 says why no package makes them.

interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly allOf?: readonly Schema[];
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean | Schema;
  readonly description?: string;
  readonly format?: string;
}
interface Parameter {
  readonly name: string;
  readonly in: 'path' | 'query' | 'header';
  readonly required?: boolean;
  readonly schema: Schema;
}

type Content = Readonly<Record<string, { readonly schema: Schema; readonly examples?: Readonly<Record<string, { readonly value: object }>> }>>;

interface Operation {
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: { readonly required?: boolean; readonly content: Content };
  readonly responses: Readonly<Record<string, { readonly content?: Content }>>;
}

type Schemas = Readonly<Record<string, Schema>>;
export interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly schemas: Schemas };
}

const head = `// Made from the OpenAPI document. After a change of the API: npx vitest run test/client/openapi-types.test.ts --update=true\n`;
const bytes = 'Uint8Array<ArrayBuffer> | Blob | ReadableStream<Uint8Array>';
const key = 'Idempotency-Key';
const timestampForm = 'RFC 3339, in UTC.';

/** Parameters that belong together are declared once. They are no interface, since an interface is not assignable to a record. */
const groups = Object.entries({ PageQuery: ['page_id', 'limit'], IdempotencyHeaders: [key] });

/** Returns the module with the types of the document's schemas, operations and failures. */
export function typesOf({ paths, components: { schemas } }: Document): string {
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ route: `${method.toUpperCase()} ${path}`, operation })));
  const parameters = new Map(operations.flatMap(({ operation }) => operation.parameters ?? []).map((one) => [one.name, one]));
  const keyed = operations.filter(({ operation }) => operation.parameters?.some(({ name }) => name === key)).map(({ route }) => route);
  const text = [
    head,
    `export interface Page<T> {\n  readonly items: readonly T[];`,
    `  /** Send it as \`page_id\` to get the next page. Null on the last page. */\n  readonly next_page_id: string | null;\n}\n`,
    `${comment(timestampForm)}export type Timestamp = string;\n`,
    ...Object.entries(withBases(schemas)).map(([name, schema], _, all) => declaration(name, schema, all)),
    ...groups.map(([name, members]) => `export type ${name} = ${inputOf(members.flatMap((one) => parameters.get(one) ?? []))};\n`),
    `/** All requests of the API, and their responses: \`Response\` if it is bytes. The API reference describes them. */`,
    `export interface Operations {`,
    ...operationsOf(operations).map(indented),
    `}\n`,
    `/** The data of a failure besides its message, by its code. */`,
    `export interface ApiFailures {`,
    ...failuresOf(operations.map(({ operation }) => operation), schemas['Problem'] ?? {}).map(indented),
    `}\n`,
    `/** The requests with an \`Idempotency-Key\`. If one is repeated with the same key, it takes effect once. */`,
    `export const keyedRoutes: ReadonlySet<string> = new Set([`,
    ...keyed.map((route) => `  '${route}',`),
    `]);`,
    '',
  ].join('\n');
  const pages = Object.entries(schemas).filter(([, schema]) => isPage(schema));
  return laidOut(pages.reduce((made, [name, { properties }]) =>
    made.replaceAll(`: ${name};`, `: Page<${typeOf(properties?.['items']?.items ?? {})}>;`), text));
}

/** The members of a union whose properties only differ in some types are one interface with these types as parameters. */
function withBases(schemas: Schemas): Schemas {
  const all: Record<string, Schema> = {};
  for (const [name, schema] of Object.entries(schemas)) {
    // The types of failures say what is in these two. A page is a `Page` of its items.
    if (name === 'Problem' || name === 'HTTPValidationError' || isPage(schema)) continue;
    all[name] ??= schema;
    const members = Object.entries(schemas).filter(([member]) => schema.oneOf?.some((one) => typeOf(one) === member));
    if (new Set(members.map(([, { properties = {}, required }]) => String([Object.keys(properties), required]))).size > 1) continue;
    const typesIn = ({ properties = {} }: Schema, property: string) => properties[property] && typeOf(properties[property]);
    const isCommon = (property: string) => new Set(members.map(([, member]) => typesIn(member, property))).size === 1;
    for (const [member, given] of members) {
      const properties = Object.entries(given.properties ?? {});
      const own = properties.map(([one]) => one).filter((one) => !isCommon(one));
      const base = properties.map(([one, type]) => [one, own.includes(one) ? { $ref: parameterOf(one) } : type]);
      all[`${name}Of<${own.map(parameterOf).join(', ')}>`] = { ...given, properties: Object.fromEntries(base), description: '' };
      all[member] = { $ref: `${name}Of<${own.map((one) => typesIn(given, one)).join(', ')}>` };
    }
  }
  return all;
}

const parameterOf = (property: string): string => property.charAt(0).toUpperCase() + property.slice(1);

function declaration(name: string, schema: Schema, all: readonly (readonly [string, Schema])[]): string {
  const type = typeOf(extended(name, schema, all));
  const isInterface = /^(?:\w+ & )?\{.*\}$/s.test(type) && schema.anyOf === undefined && schema.oneOf === undefined;
  const shown = isInterface ? `interface ${name} ${type.replace(/^(\w+) &/, 'extends $1')}` : `type ${name} = ${type};`;
  return `${comment(schema.description)}export ${shown}\n`;
}

/** Returns the schema without the properties of the largest other schema that has a part of its properties, which it then extends. */
function extended(name: string, schema: Schema, all: readonly (readonly [string, Schema])[]): Schema {
  const own = shownMembers(schema);
  const parts = all.map(([base, of]) => ({ base, shown: shownMembers(of) }))
    .filter(({ base, shown }) => base !== name && shown.length > 2 && shown.length < own.length && shown.every((one) => own.includes(one)));
  const [part] = parts.toSorted((a, b) => b.shown.length - a.shown.length);
  if (part === undefined || schema.allOf !== undefined) return schema;
  const properties = Object.entries(schema.properties ?? {}).filter((_, index) => !part.shown.includes(own[index] ?? ''));
  return { ...schema, properties: Object.fromEntries(properties), allOf: [{ $ref: part.base }] };
}

function shownMembers({ properties = {}, required = [] }: Schema): string[] {
  return Object.entries(properties).map((property) => memberOf(property, required));
}

function isPage({ properties = {} }: Schema): boolean {
  return Object.keys(properties).join() === 'items,next_page_id';
}

/** An operation with the same request and response as an earlier one refers to that one. */
function operationsOf(operations: readonly { readonly route: string; readonly operation: Operation }[]): string[] {
  const earlier = new Map<string, string>();
  return operations.map(({ route, operation }) => {
    const form = formOf(operation);
    const type = earlier.get(form) ?? form;
    if (form.includes('/**')) earlier.set(form, `Operations['${route}']`);
    return `'${route}': ${type};`;
  });
}

function formOf({ parameters = [], requestBody, responses }: Operation): string {
  const members = (['query', 'header'] as const).flatMap((place) => {
    const given = parameters.filter((parameter) => parameter.in === place);
    if (given.length === 0) return [];
    const shared = groups.filter(([, names]) => names.every((name) => given.some((one) => one.name === name)));
    const others = given.filter(({ name }) => !shared.some(([, names]) => names.includes(name)));
    const types = [...shared.map(([name]) => name), ...(others.length === 0 ? [] : [inputOf(others)])];
    return [member(place === 'header' ? 'headers' : place, types.join(' & '), given.every(({ required }) => required !== true))];
  });
  if (requestBody !== undefined) {
    const json = requestBody.content['application/json']?.schema;
    members.push(member('body', json === undefined ? bytes : typeOf(json), requestBody.required !== true));
  }
  return block([...members, member('response', responseOf(responses), false)]);
}

function inputOf(parameters: readonly Parameter[]): string {
  const required = parameters.filter((one) => one.required).map(({ name }) => name);
  return objectOf({ properties: Object.fromEntries(parameters.map(({ name, schema }) => [name, schema])), required });
}

/** Uses the first success response, since another one (201 after 200) has the same form. */
function responseOf(responses: Operation['responses']): string {
  const content = Object.entries(responses).find(([status]) => /^(?:101|2)/.test(status))?.[1].content;
  if (content === undefined) return 'void';
  const json = content['application/json'];
  return json === undefined ? 'Response' : typeOf(json.schema);
}

/** Uses the examples, since the schema of problem details has the members of all codes. */
function failuresOf(operations: readonly Operation[], problem: Schema): string[] {
  const examples = operations.flatMap(({ responses }) => Object.values(responses)).flatMap(({ content }) =>
    Object.entries(content?.['application/problem+json']?.examples ?? {}));
  const common = new Set(['type', 'title', 'status', 'detail', 'code']);
  const contexts = Object.entries(Object.fromEntries(examples)).map(([code, { value }]) => {
    const names = Object.keys(value).filter((name) => !common.has(name));
    return member(code, block(names.map((name) => member(name, typeOf(problem.properties?.[name] ?? {}), false))), false);
  });
  return [...contexts, member('invalid_request', block([member('problems', 'readonly ValidationError[]', false)]), false)].toSorted();
}

const indented = (text: string): string => text.replaceAll(/^(?=.)/gm, '  ');
const literal = (value: unknown): string => JSON.stringify(value).replaceAll('"', "'");
const union = (types: readonly string[]): string => [...new Set(types)].join(' | ');

function typeOf(schema: Schema): string {
  const { $ref, type, anyOf, oneOf = anyOf, allOf, items, properties } = schema;
  if ($ref !== undefined) return $ref.replace('#/components/schemas/', '');
  if (type === 'null') return 'null';
  if (schema.format === 'date-time' && type === 'string') return 'Timestamp';
  if (schema.const !== undefined) return literal(schema.const);
  if (schema.enum !== undefined) return union(schema.enum.map(literal));
  if (oneOf !== undefined) return union(oneOf.map(typeOf));
  if (allOf !== undefined) return [...allOf.map(typeOf), ...(properties === undefined ? [] : [objectOf(schema)])].join(' & ');
  if (Array.isArray(type)) return union(type.map((one: string) => typeOf({ ...schema, type: one })));
  if (type === 'array') return `readonly ${typeOf(items ?? {}).replace(/^.*[|&].*$/s, '($&)')}[]`;
  if (type === 'object' || properties !== undefined) return objectOf(schema);
  return ({ string: 'string', integer: 'number', number: 'number', boolean: 'boolean' } as const)[String(type)] ?? 'unknown';
}

function objectOf(schema: Schema): string {
  const { properties, required = [], additionalProperties: other = false } = schema;
  const others = typeof other === 'object' && Object.keys(other).length > 0 ? typeOf(other) : 'unknown';
  if (properties === undefined) return other !== false ? `Readonly<Record<string, ${others}>>` : 'object';
  const [first = '', ...further] = new Set(Object.values(properties).map(typeOf));
  const isTable = further.length === 0 && Object.values(properties).length > 4 && Object.values(properties).every((one) => !one.description);
  if (isTable) return `Readonly<Record<${union(Object.keys(properties).map(literal))}, ${first}>>`;
  const members = Object.entries(properties).map((property) => memberOf(property, required));
  return block([...members, ...(other !== false ? [`readonly [name: string]: ${others};`] : [])]);
}

function memberOf([name, property]: [string, Schema], required: readonly string[]): string {
  const text = property.description === timestampForm ? '' : comment(property.description);
  return text + member(name, typeOf(property), !required.includes(name));
}

/** An optional property may also be undefined. */
function member(name: string, type: string, isOptional: boolean): string {
  const shown = /^\w+$/.test(name) ? name : `'${name}'`;
  return `readonly ${shown}${isOptional ? '?' : ''}: ${type}${isOptional ? ' | undefined' : ''};`;
}

function block(members: readonly string[]): string {
  return members.length === 0 ? 'object' : `{\n${members.map(indented).join('\n')}\n}`;
}

function comment(text = ''): string {
  return text === '' ? '' : `/** ${text.replaceAll('*/', '* /')} */\n`;
}

/** The maximum length of a line. */
const width = 138;
const blocks = /^( *)(.+)\{\n((?:\1 {2}readonly .*;\n)+| +\/\*\* .*\n\1 {2}readonly .*;\n)\1\}(.*)$/gm;

/** Puts short blocks on one line, and breaks lines that are too long. */
function laidOut(text: string): string {
  const joined = text.replaceAll(blocks, (whole, indent: string, before: string, members: string, after: string) => {
    const line = `${indent}${before}{ ${members.trim().slice(0, -1).replaceAll(/\n */g, ' ')} }${after}`;
    return line.length > width || (indent === '' && line.includes('/**')) ? whole : line;
  });
  if (joined !== text) return laidOut(joined);
  return text.replaceAll(/^.+$/gm, broken).replaceAll(/^(export .*[;}]\n)\n(?=export .*[;}]$)/gm, '$1');
}

function broken(line: string): string {
  if (line.length <= width) return line;
  const [, indent = '', text = '', end] = /^( *)(?:\/\*\* )?(.*?)( \*\/)?$/.exec(line) ?? [];
  const isComment = end !== undefined;
  const parts = text.match(new RegExp(`\\S.{0,${width - indent.length - 4}}(?= ${isComment ? '' : '\\|'}|$)`, 'g')) ?? [];
  return indent + (isComment ? ['/**', ...parts.map((part) => ` * ${part}`), ' */'].join(`\n${indent}`) : parts.join(`\n${indent}  `));
}
