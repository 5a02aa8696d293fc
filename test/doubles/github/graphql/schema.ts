import { schema } from '@octokit/graphql-schema';
import { buildSchema, type GraphQLSchema } from 'graphql';

let built: GraphQLSchema | undefined;

/** GitHub's own GraphQL schema. It is large, and built once. */
export function githubSchema(): GraphQLSchema {
  built ??= buildSchema(schema.idl, { assumeValid: true });
  return built;
}
