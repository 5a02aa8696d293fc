export { createNetworkProbe, type NetworkProbeOptions } from './network-probe.ts';
