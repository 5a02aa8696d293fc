import { Router } from 'express';
import type { Skep } from '../../application/skep.ts';
import { Failure } from '../../domain/failure.ts';
import { answering, refusing } from './answering.ts';
import { deploymentOf, type Deployment } from './deployment.ts';
import { settingsOf, type RouterOptions } from './options.ts';
import { pathPattern } from './request/path.ts';
import { operations } from './routes/index.ts';

/**
 * The HTTP interface as an Express router, at home under any prefix: `app.use('/agents', createRouter(skep))`. It
 * answers every request that reaches it, also those for routes and methods that it does not have.
 */
export function createRouter(skep: Skep, options: RouterOptions = {}): Router {
  return routerOf(deploymentOf(skep, settingsOf(options)));
}

/** The router of a deployment that is made already. */
export function routerOf(deployment: Deployment): Router {
  const router = Router();
  for (const [path, atPath] of Map.groupBy(operations, ({ path }) => path)) {
    const route = router.route(pathPattern(path));
    for (const operation of atPath) route[operation.method](answering(deployment, operation));
    const allow = atPath.flatMap(({ method }) => (method === 'get' ? ['GET', 'HEAD'] : [method.toUpperCase()]));
    const needsKey = atPath.some((operation) => operation.needsKey);
    route.all(refusing(deployment, new Failure('method_not_allowed', { allow }), needsKey));
  }
  router.use(refusing(deployment, new Failure('not_found', {}), true));
  return router;
}
