import type Docker from 'dockerode';
import type { SandboxIsolation, SandboxResources } from '../../../../domain/sandbox-spec.ts';

const cpuPeriod = 100_000;

/** How a container is held apart from the machine, and what it may take of it. */
export function hardening(isolation: SandboxIsolation, resources: SandboxResources): Docker.HostConfig {
  return {
    CapDrop: ['ALL'],
    CapAdd: [...isolation.capabilities],
    SecurityOpt: [...(isolation.newPrivileges ? [] : ['no-new-privileges']), ...(isolation.seccomp === 'unconfined' ? ['seccomp=unconfined'] : [])],
    ReadonlyRootfs: isolation.readOnlyRoot,
    IpcMode: 'private',
    // A first process that passes on signals and buries the dead.
    Init: true,
    RestartPolicy: { Name: 'no' },
    // Where the host runs out of memory, a sandbox goes before what is not one.
    OomScoreAdj: 500,
    ...(isolation.ociRuntime !== null && { Runtime: isolation.ociRuntime }),
    ...limits(resources),
  };
}

function limits({ cpus, memoryBytes, pids, openFiles, logBytes }: SandboxResources): Docker.HostConfig {
  return {
    // As a quota, since a number of CPUs is refused by a machine that has fewer.
    ...(cpus !== null && { CpuPeriod: cpuPeriod, CpuQuota: Math.max(1_000, Math.round(cpus * cpuPeriod)) }),
    ...(memoryBytes !== null && { Memory: memoryBytes, MemorySwap: memoryBytes }),
    ...(pids !== null && { PidsLimit: pids }),
    ...(openFiles !== null && { Ulimits: [{ Name: 'nofile', Soft: openFiles, Hard: openFiles }] }),
    // The current file and one before it.
    LogConfig: { Type: 'json-file', Config: logBytes === null ? {} : { 'max-size': String(Math.max(1_024, Math.floor(logBytes / 2))), 'max-file': '2' } },
  };
}
