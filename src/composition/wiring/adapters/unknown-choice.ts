/** For callers without types: an option that names no adapter. */
export function unknownChoice(option: string, value: unknown, takes: string): TypeError {
  const named = typeof value === 'object' && value !== null ? Object.values(value).find((member) => typeof member === 'string') : value;
  return new TypeError(`createSkep: the option ${option} names ${JSON.stringify(named)}; it takes ${takes}.`);
}
