import { createHash, randomUUID } from 'node:crypto';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import type Docker from 'dockerode';
import { outputTail } from '../../../domain/output-tail.ts';
import { type Engine, messageOf, removeContainer, statusOf, tryStart, unlessMissing } from './engine.ts';
import { engineStartedAt } from './engine-info.ts';
import { createFrameReader } from './stream-frames.ts';
import { labels } from './labels.ts';
import { tarOfOne } from './single-entry-tar.ts';

/** The prefix of a bridge's name, by the kind of its network. The firewall's rules select bridges by it. */
export const bridgePrefixes = { isolated: 'skepi', shared: 'skeps' } as const;

/** The addresses of clouds' metadata services that a container can't have as its own addresses (see `networks.ts`). */
const metadataAddresses = ['169.254.0.0/16', '168.63.129.16', '100.100.100.200', '192.0.0.192'];

/**
 * The rules for all deployments of an engine. Isolated sandboxes reach no port of the machine except DNS, so also no published port of
 * another sandbox. A second run replaces the rules in one step, and adds no jump twice.
 */
const script = `
set -e
iptables-restore --noflush -w 5 <<RULES
*filter
:SKEP-INPUT - [0:0]
:SKEP-FORWARD - [0:0]
-A SKEP-INPUT -m conntrack --ctstate RELATED,ESTABLISHED -j RETURN
-A SKEP-INPUT -p udp --dport 53 -j RETURN
-A SKEP-INPUT -p tcp --dport 53 -j RETURN
-A SKEP-INPUT -j REJECT
${metadataAddresses.map((address) => `-A SKEP-FORWARD -d ${address} -j REJECT`).join('\n')}
-A SKEP-FORWARD -i ${bridgePrefixes.isolated}+ -o skep+ -j REJECT
COMMIT
RULES
forward=DOCKER-USER
iptables -w 5 -n -L DOCKER-USER >/dev/null 2>&1 || forward=FORWARD
for rule in 'INPUT -i ${bridgePrefixes.isolated}+ -j SKEP-INPUT' "$forward -i skep+ -j SKEP-FORWARD"; do
  iptables -w 5 -C $rule 2>/dev/null || iptables -w 5 -I $rule
done
`;

const digest = createHash('sha256').update(script).digest('hex').slice(0, 12);

/** The container stays after it has ended, so that not every new process creates the rules again. */
const containerName = 'skep_firewall';

/** An image without files: its containers run only programs of the engine's machine. */
const emptyImage = 'skep/empty:latest';

/** The folders of a machine's programs and libraries. A machine may not have all of them. */
const systemFolders = ['/bin', '/etc', '/lib', '/lib64', '/sbin', '/usr'];

const againMs = 60_000;
const maxMessageBytes = 300;

/**
 * Sets up firewall rules on the engine's machine. The engine's API can't do that. So a container in the machine's network runs the
 * machine's own `iptables`, which the engine needs too. This also works for a remote engine, and Skep needs no more rights.
 */
export class Firewall {
  readonly #engine: Engine;
  #setUp: Promise<void> | undefined;
  #triedAt = 0;
  #problem: string | null = null;

  constructor(engine: Engine) {
    this.#engine = engine;
  }

  /** Sets up the rules once. Never rejects: a machine without `iptables` can run sandboxes too, and `check` reports the problem. */
  ensure(): Promise<void> {
    if (this.#setUp !== undefined && (this.#problem === null || performance.now() - this.#triedAt < againMs)) return this.#setUp;
    this.#triedAt = performance.now();
    this.#setUp = this.#run().then(
      () => void (this.#problem = null),
      (error: unknown) => {
        this.#problem = messageOf(error);
        process.emitWarning(`The firewall of sandboxes could not be set up: ${this.#problem}`);
      },
    );
    return this.#setUp;
  }

  /** Returns why the last try failed, here or in another process. Null if the rules are active, or were not needed yet. */
  async check(): Promise<string | null> {
    if (this.#problem !== null) return this.#problem;
    const found = await this.#engine.inspect(containerName);
    return found !== null && hasFailed(found) ? `docker logs ${containerName} says why its firewall could not be set up` : null;
  }

  /** Must be called if the machine may have been restarted. */
  forget(): void {
    this.#setUp = undefined;
  }

  async #run(): Promise<void> {
    const { docker, call } = this.#engine;
    // The machine loses its rules only in a restart, which also restarts its engine.
    const rules = `${digest} ${(await engineStartedAt(this.#engine)) ?? randomUUID()}`;
    const container = docker.getContainer(containerName);
    const found = await this.#engine.inspect(containerName);
    const isCurrent = found?.Config.Labels[labels.firewall] === rules && !hasFailed(found);
    if (found !== null && !isCurrent) await removeContainer(this.#engine, found.Id);
    if (!isCurrent) await this.#create(rules, systemFolders);
    if (!isCurrent || found?.State.Status === 'created') {
      const error = await tryStart(this.#engine, containerName);
      if (error !== null) throw error;
    }
    const { StatusCode } = await call((abortSignal) => container.wait({ abortSignal }));
    if (StatusCode === 0) return;
    const frames = await call((abortSignal) => container.logs({ stdout: true, stderr: true, tail: 5, abortSignal }));
    const chunks: Buffer[] = [];
    createFrameReader((_, content) => chunks.push(content))(frames);
    throw new Error(`its program ended with ${StatusCode}: ${outputTail(Buffer.concat(chunks), maxMessageBytes).replaceAll('\n', ' ')}`);
  }

  async #importImage(): Promise<void> {
    const text = Buffer.from('An empty image for the firewall rules of sandboxes.\n');
    const archive = Readable.from(tarOfOne({ name: '.skep', size: text.length }, [text]));
    const [repo, tag] = emptyImage.split(':');
    await buffer(await this.#engine.call(() => this.#engine.docker.importImage(archive, { repo, tag })));
  }

  /** Creates the container, without the folders that the machine does not have. */
  async #create(rules: string, folders: readonly string[]): Promise<void> {
    const { docker, call } = this.#engine;
    const image = await unlessMissing(call(() => docker.getImage(emptyImage).inspect()));
    if (image === null) await this.#importImage();
    const config: Docker.ContainerCreateOptions = {
      name: containerName,
      Image: emptyImage,
      Entrypoint: ['/bin/sh', '-c', script],
      Env: ['PATH=/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin'],
      Labels: { [labels.firewall]: rules },
      HostConfig: {
        NetworkMode: 'host',
        UsernsMode: 'host',
        CapDrop: ['ALL'],
        CapAdd: ['NET_ADMIN', 'NET_RAW'],
        // The folders have the SELinux labels of the machine, not of a container.
        SecurityOpt: ['no-new-privileges', 'label=disable'],
        ReadonlyRootfs: true,
        Mounts: folders.map((folder) => ({ Type: 'bind', Source: folder, Target: folder, ReadOnly: true })),
      },
    };
    try {
      await call((abortSignal) => docker.createContainer({ ...config, abortSignal }));
    } catch (error) {
      // Another process is creating it.
      if (statusOf(error) === 409) return;
      const absent = folders.find((folder) => messageOf(error).endsWith(`bind source path does not exist: ${folder}`));
      if (absent === undefined) throw error;
      await this.#create(rules, folders.filter((folder) => folder !== absent));
    }
  }
}

function hasFailed({ State }: Docker.ContainerInspectInfo): boolean {
  return State.Status === 'exited' && State.ExitCode !== 0;
}
