/** Whom the programs of a container run as. */
export interface Owner {
  readonly uid: number;
  readonly gid: number;
}

/**
 * Finds whom `name`, `uid`, `name:group` or `uid:gid` means in an image, by its `/etc/passwd` and `/etc/group`. Null where
 * it has no such user: the engine says so when it starts the container.
 */
export async function resolveOwner(user: string, read: (path: string) => Promise<string>): Promise<Owner | null> {
  const [name = '', group] = user.split(':');
  if ((name === '' || name === '0' || name === 'root') && group === undefined) return { uid: 0, gid: 0 };
  const uid = number(name);
  const gid = group === undefined ? null : number(group);
  if (uid !== null && gid !== null) return { uid, gid };

  const users = lines(await read('/etc/passwd'));
  const entry = users.find((fields) => fields[0] === name) ?? users.find((fields) => uid !== null && number(fields[2]) === uid);
  const foundUid = uid ?? number(entry?.[2]);
  if (foundUid === null) return null;
  if (group === undefined) return { uid: foundUid, gid: number(entry?.[3]) ?? 0 };
  if (gid !== null) return { uid: foundUid, gid };
  const foundGid = number(lines(await read('/etc/group')).find((fields) => fields[0] === group)?.[2]);
  return foundGid === null ? null : { uid: foundUid, gid: foundGid };
}

function lines(text: string): string[][] {
  return text.split('\n').map((line) => line.split(':'));
}

function number(text: string | undefined): number | null {
  return text !== undefined && /^\d{1,10}$/.test(text) ? Number(text) : null;
}
