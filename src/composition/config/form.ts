import { z } from 'zod';

/** What a field of the file takes. */
export interface Form {
  /** A description with an example. */
  readonly takes: string;
  /** Whether it may hold a secret. Then what was found in it, or below it, is never shown. */
  readonly secret: boolean;
}

const forms = z.registry<Form>();

/** Registers what the schema takes, and returns it. Each field needs a schema of its own. */
export function takes<S extends z.ZodType>(schema: S, text: string, { secret = false } = {}): S {
  forms.add(schema, { takes: text, secret });
  return schema;
}

type Path = readonly PropertyKey[];

/** Returns what the field at the path takes, or what its parent takes if the field has no form. */
export function formAt(schema: z.ZodType, path: Path): Form {
  const [key, ...rest] = path;
  const own = layersOf(schema).map((layer) => forms.get(layer)).find((form) => form !== undefined);
  const below = key === undefined ? null : childOf(schema, key);
  const inner = below === null ? null : formAt(below, rest);
  return { takes: inner?.takes || own?.takes || '', secret: own?.secret === true || inner?.secret === true };
}

/** Returns the names of the fields of the mapping at the path. Empty if its fields are not fixed. */
export function fieldsAt(schema: z.ZodType, path: Path): readonly string[] {
  const at = path.reduce<z.ZodType | null>((part, key) => (part === null ? null : childOf(part, key)), schema);
  const mapping = at === null ? undefined : layersOf(at).at(-1);
  return mapping instanceof z.ZodObject ? Object.keys(mapping.shape) : [];
}

/** Returns the paths of all fields: `specs[].ready.within`. */
export function allFields(schema: z.ZodType, prefix = ''): readonly string[] {
  const inner = layersOf(schema).at(-1);
  if (inner instanceof z.ZodArray) return allFields(schemaOf(inner.element), `${prefix}[]`);
  if (!(inner instanceof z.ZodObject)) return [];
  return Object.entries(shapeOf(inner)).flatMap(([name, field]) => {
    const path = prefix === '' ? name : `${prefix}.${name}`;
    return [path, ...allFields(field, path)];
  });
}

function childOf(schema: z.ZodType, key: PropertyKey): z.ZodType | null {
  const inner = layersOf(schema).at(-1);
  if (inner instanceof z.ZodObject) return (Object.hasOwn(inner.shape, key) ? shapeOf(inner)[String(key)] : null) ?? null;
  if (inner instanceof z.ZodRecord) return schemaOf(inner.valueType);
  return inner instanceof z.ZodArray ? schemaOf(inner.element) : null;
}

/** Returns the schema and what it wraps, the outermost first. */
function layersOf(schema: z.ZodType): readonly z.ZodType[] {
  return schema instanceof z.ZodOptional ? [schema, ...layersOf(schemaOf(schema.unwrap()))] : [schema];
}

function shapeOf(schema: z.ZodObject): Readonly<Record<string, z.ZodType>> {
  return schema.shape;
}

function schemaOf(part: unknown): z.ZodType {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- what a schema consists of are schemas of the same library
  return part as z.ZodType;
}
