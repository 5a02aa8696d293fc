type Schema = Readonly<Record<string, unknown>>;

/** The smallest value that a schema of the OpenAPI description allows, for all the fields that nobody reads. */
export function sampleOf(schema: unknown, lookUp: (ref: string) => unknown): unknown {
  if (!isSchema(schema)) return null;
  if (typeof schema['$ref'] === 'string') return sampleOf(lookUp(schema['$ref']), lookUp);
  if (schema['nullable'] === true) return null;
  if (Array.isArray(schema['enum'])) return schema['enum'][0];
  if (Array.isArray(schema['allOf'])) return merged(schema['allOf'].map((part) => sampleOf(part, lookUp)));
  const [choice]: unknown[] = [schema['anyOf'], schema['oneOf']].flatMap((list): unknown[] => (Array.isArray(list) ? list : []));
  if (choice !== undefined) return sampleOf(choice, lookUp);
  return ofType(schema, lookUp);
}

function ofType(schema: Schema, lookUp: (ref: string) => unknown): unknown {
  switch (schema['type']) {
    case 'string':
      return ofFormat(schema['format']);
    case 'integer':
    case 'number':
      return 1;
    case 'boolean':
      return false;
    case 'array':
      return [];
    default:
      return ofObject(schema, lookUp);
  }
}

function ofObject(schema: Schema, lookUp: (ref: string) => unknown): Record<string, unknown> {
  const required: unknown[] = Array.isArray(schema['required']) ? schema['required'] : [];
  const properties = isSchema(schema['properties']) ? schema['properties'] : {};
  return Object.fromEntries(required.map((name) => [String(name), sampleOf(properties[String(name)], lookUp)]));
}

function ofFormat(format: unknown): string {
  if (format === 'date-time') return '2020-01-01T00:00:00Z';
  if (format === 'email') return 'a@example.com';
  return format === 'uri' ? 'https://example.com/x' : 'x';
}

/** Replaces the fields of the sample that have real values. */
export function overlay(sample: unknown, real: unknown): unknown {
  if (!isSchema(sample) || !isSchema(real)) return real;
  const fields = Object.entries(real).map(([name, value]) => [name, overlay(sample[name], value)] as const);
  return { ...sample, ...Object.fromEntries(fields) };
}

function merged(parts: readonly unknown[]): Schema {
  return Object.assign({}, ...parts.filter(isSchema));
}

function isSchema(value: unknown): value is Schema {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
