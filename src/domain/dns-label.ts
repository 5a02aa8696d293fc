/** The form of an id, which is safe in a host name, a path and a name on an engine. */
export const dnsLabel = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;
