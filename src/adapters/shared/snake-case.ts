export type SnakeCase<S extends string> = S extends `${infer Head}${infer Rest}`
  ? `${Head extends Lowercase<Head> ? Head : `_${Lowercase<Head>}`}${SnakeCase<Rest>}`
  : S;

export type InSnakeCase<T> = T extends readonly (infer Item)[]
  ? InSnakeCase<Item>[]
  : T extends object
    ? { [K in keyof T & string as SnakeCase<K>]: InSnakeCase<T[K]> }
    : T;

/** Returns the value with its field names in snake case. Often this is the only difference between the domain's data and HTTP's. */
export function inSnakeCase<T>(value: T): InSnakeCase<T> {
  const converted: unknown = Array.isArray(value)
    ? value.map(inSnakeCase)
    : typeof value === 'object' && value !== null
      ? Object.fromEntries(Object.entries(value).map(([name, member]) => [snakeCase(name), inSnakeCase(member)]))
      : value;
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the type says the same as the code above
  return converted as InSnakeCase<T>;
}

/** Converts a name of the domain for HTTP and SQL: `sandboxSpecId` becomes `sandbox_spec_id`. */
export function snakeCase(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

export type CamelCase<S extends string> = S extends `${infer First}_${infer Rest}` ? `${First}${Capitalize<CamelCase<Rest>>}` : S;
export type InCamelCase<T> = { [K in keyof T & string as CamelCase<K>]: T[K] };

/** Returns the object with its own field names in camel case: `git_timeout` becomes `gitTimeout`. */
export function inCamelCase<T extends object>(values: T): InCamelCase<T> {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the names change as in the type
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [camelCase(name), value])) as InCamelCase<T>;
}

export function camelCase(name: string): string {
  return name.replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
}
