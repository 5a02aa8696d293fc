// TypeScript's types of an OpenAPI document, as far as the forms that this one has. Record 39 says why no package makes them.

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
}

interface Parameter {
  readonly name: string;
  readonly in: 'path' | 'query' | 'header';
  readonly required?: boolean;
  readonly schema: Schema;
  readonly description?: string;
}

type Content = Readonly<Record<string, { readonly schema: Schema; readonly examples?: Readonly<Record<string, { readonly value: object }>> }>>;

interface Operation {
  readonly summary: string;
  readonly description?: string;
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: { readonly required?: boolean; readonly content: Content };
  readonly responses: Readonly<Record<string, { readonly content?: Content }>>;
}

export interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> };
}

const head = `// Made from the OpenAPI document. After a change of the API: npx vitest run test/client/openapi-types.test.ts --update=true\n`;
const bytes = 'Uint8Array<ArrayBuffer> | Blob | ReadableStream<Uint8Array>';
const key = 'Idempotency-Key';

/** Returns the module with the types of the document's schemas, operations and failures. */
export function typesOf({ paths, components: { schemas } }: Document): string {
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ route: `${method.toUpperCase()} ${path}`, operation })));
  const keyed = operations.filter(({ operation }) => operation.parameters?.some(({ name }) => name === key)).map(({ route }) => route);
  return [
    head,
    ...Object.entries(schemas).map(([name, schema]) => declaration(name, schema)),
    `/** Every request that the API takes, and what it is answered with; \`Response\` where that is bytes. */`,
    `export interface Operations {`,
    ...operations.map(({ route, operation }) => indented(operationOf(route, operation))),
    `}\n`,
    `/** What a failure says besides its message, by its code. */`,
    `export interface ApiFailures {`,
    ...failuresOf(operations.map(({ operation }) => operation), schemas['Problem'] ?? {}).map(indented),
    `}\n`,
    `/** Requests that take an \`Idempotency-Key\`: sent again with the same one, they are done once. */`,
    `export const keyedRoutes: ReadonlySet<string> = new Set([`,
    ...keyed.map((route) => `  '${route}',`),
    `]);`,
    '',
  ].join('\n');
}

function declaration(name: string, schema: Schema): string {
  const type = typeOf(schema);
  const isInterface = type.startsWith('{') && schema.anyOf === undefined && schema.oneOf === undefined;
  return `${comment(schema.description)}export ${isInterface ? `interface ${name} ${type}` : `type ${name} = ${type};`}\n`;
}

function operationOf(route: string, { summary, description, parameters = [], requestBody, responses }: Operation): string {
  const members = (['path', 'query', 'header'] as const).flatMap((place) => {
    const given = parameters.filter((parameter) => parameter.in === place);
    if (given.length === 0) return [];
    const isOptional = given.every(({ required }) => required !== true);
    return [member(place === 'header' ? 'headers' : place, block(given.map(parameterOf)), isOptional)];
  });
  if (requestBody !== undefined) {
    const json = requestBody.content['application/json']?.schema;
    members.push(member('body', json === undefined ? bytes : typeOf(json), requestBody.required !== true));
  }
  members.push(member('response', responseOf(responses), false));
  return `${comment([`${summary}.`, description].join(' ').trim())}'${route}': ${block(members)};`;
}

function parameterOf({ name, schema, required, description }: Parameter): string {
  return `${comment(description ?? schema.description)}${member(name, typeOf(schema), required !== true)}`;
}

/** Of several answers the last is that of a new thing, which has the same form. */
function responseOf(responses: Operation['responses']): string {
  const content = Object.entries(responses).find(([status]) => /^(?:101|2)/.test(status))?.[1].content;
  if (content === undefined) return 'void';
  const json = content['application/json'];
  return json === undefined ? 'Response' : typeOf(json.schema);
}

/** By the examples, since the schema of problem details has the members of all codes. */
function failuresOf(operations: readonly Operation[], problem: Schema): string[] {
  const examples = operations.flatMap(({ responses }) => Object.values(responses)).flatMap(({ content }) =>
    Object.entries(content?.['application/problem+json']?.examples ?? {}));
  const common = new Set(['type', 'title', 'status', 'detail', 'code']);
  const contexts = Object.entries(Object.fromEntries(examples)).map(([code, { value }]) => {
    const names = Object.keys(value).filter((name) => !common.has(name));
    const members = names.map((name) => member(name, typeOf(problem.properties?.[name] ?? {}), false));
    return member(code, members.length === 0 ? 'object' : block(members), false);
  });
  return [...contexts, member('invalid_request', block([member('problems', 'readonly ValidationError[]', false)]), false)].toSorted();
}

function typeOf(schema: Schema): string {
  const { $ref, type, anyOf, oneOf = anyOf, allOf, items, properties } = schema;
  if ($ref !== undefined) return $ref.replace('#/components/schemas/', '');
  if (schema.const !== undefined) return literal(schema.const);
  if (schema.enum !== undefined) return union(schema.enum.map(literal));
  if (oneOf !== undefined) return union(oneOf.map(typeOf));
  if (allOf !== undefined) return allOf.map(typeOf).join(' & ');
  if (Array.isArray(type)) return union(type.map((one: string) => typeOf({ ...schema, type: one })));
  if (type === 'array') return `readonly ${grouped(typeOf(items ?? {}))}[]`;
  if (type === 'object' || properties !== undefined) return objectOf(schema);
  return ({ string: 'string', integer: 'number', number: 'number', boolean: 'boolean', null: 'null' } as const)[String(type)] ?? 'unknown';
}

/** Whether it has members that the schema does not name. */
function isOpen({ additionalProperties: other = false }: Schema): boolean {
  return other !== false;
}

function objectOf(schema: Schema): string {
  const { properties, required = [], additionalProperties: other } = schema;
  const others = typeof other === 'object' && Object.keys(other).length > 0 ? typeOf(other) : 'unknown';
  if (properties === undefined) return isOpen(schema) ? `Readonly<Record<string, ${others}>>` : 'object';
  const members = Object.entries(properties).map(([name, property]) =>
    `${comment(property.description)}${member(name, typeOf(property), !required.includes(name))}`);
  return block([...members, ...(isOpen(schema) ? [`readonly [name: string]: ${others};`] : [])]);
}

/** What is optional may be given as undefined, too. */
function member(name: string, type: string, isOptional: boolean): string {
  const shown = /^\w+$/.test(name) ? name : `'${name}'`;
  return `readonly ${shown}${isOptional ? '?' : ''}: ${type}${isOptional ? ' | undefined' : ''};`;
}

function block(members: readonly string[]): string {
  return members.length === 0 ? 'object' : `{\n${members.map(indented).join('\n')}\n}`;
}

function literal(value: unknown): string {
  return typeof value === 'string' ? `'${value}'` : JSON.stringify(value);
}

function grouped(type: string): string {
  return /[|&]/.test(type) ? `(${type})` : type;
}

function indented(text: string): string {
  return text.replaceAll(/^(?=.)/gm, '  ');
}

/** So many characters fit into a line. */
const lineLength = 110;

function union(types: readonly string[]): string {
  const [first = 'never', ...others] = new Set(types);
  let length = first.length;
  const rest = others.map((type) => {
    const isNewLine = length + type.length > lineLength - 20;
    length = (isNewLine ? 0 : length) + type.length + 3;
    return `${isNewLine ? '\n  ' : ' '}| ${type}`;
  });
  return [first, ...rest].join('');
}

function comment(text = ''): string {
  const lines = text.replaceAll('*/', '* /').match(new RegExp(`\\S.{0,${lineLength}}(?=\\s|$)`, 'g')) ?? [];
  if (lines.length < 2) return lines.length === 0 ? '' : `/** ${lines.join('')} */\n`;
  return `/**\n${lines.map((line) => ` * ${line}`).join('\n')}\n */\n`;
}
