import { Router } from 'express';
import type { Skep } from '../../application/skep.ts';
import { deploymentOf } from './deployment.ts';
import { Dispatcher } from './dispatcher.ts';
import { settingsOf, type RouterOptions } from './options.ts';
import { operations } from './routes/index.ts';

/**
 * The HTTP interface as an Express router, at home under any prefix: `app.use('/agents', createRouter(skep))`. It
 * answers every request that reaches it, also those for routes and methods that it does not have.
 */
export function createRouter(skep: Skep, options: RouterOptions = {}): Router {
  const { dispatch } = new Dispatcher(deploymentOf(skep, settingsOf(options)), operations);
  const router = Router();
  router.use((request, response) => dispatch(request, response, request.baseUrl));
  return router;
}
