export { modelScript, textOf, type ModelReply } from './replies.ts';
export { startModel, type ModelDouble } from './server.ts';
