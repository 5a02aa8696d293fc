type Path = readonly PropertyKey[];

/** The field as a person knows it: `limits.running`; of a spec by the spec's id, or by its place: `spec node, ready.within`. */
export function fieldName(path: Path, specs: unknown): string {
  const [top, index, ...rest] = path;
  if (top !== 'specs' || typeof index !== 'number') return pathText(path);
  const spec = `spec ${idAt(specs, index) ?? `no. ${index + 1}`}`;
  return rest.length === 0 ? spec : `${spec}, ${pathText(rest)}`;
}

function idAt(specs: unknown, index: number): string | null {
  const spec: unknown = Array.isArray(specs) ? specs[index] : null;
  const id: unknown = typeof spec === 'object' && spec !== null && 'id' in spec ? spec.id : null;
  if (typeof id !== 'string' || id === '') return null;
  return plain(id);
}

function pathText(path: Path): string {
  return path.map((part, index) => (typeof part === 'number' ? `[${part}]` : `${index === 0 ? '' : '.'}${plain(String(part))}`)).join('');
}

/** In quotes where it could be taken for something else. */
function plain(name: string): string {
  return /^[\w-]+$/.test(name) ? name : JSON.stringify(name);
}
