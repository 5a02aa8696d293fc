export { createNetworkProbe } from './network-probe.ts';
