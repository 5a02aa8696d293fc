import { schema } from '@octokit/graphql-schema';
import { buildSchema, type DocumentNode, execute, type GraphQLError, type GraphQLSchema, parse, validate, visit } from 'graphql';
import { z } from 'zod';
import type { HostedRepositories } from '../../hosted-repositories.ts';
import type { DoubleRequest, DoubleResponse } from '../request.ts';
import type { GraphqlBehavior } from './history.ts';
import { rootOf } from './objects.ts';

let built: GraphQLSchema | undefined;

/** GitHub's own GraphQL schema. It is large, and built once. */
function githubSchema(): GraphQLSchema {
  built ??= buildSchema(schema.idl, { assumeValid: true });
  return built;
}

const Body = z.strictObject({ query: z.string(), variables: z.record(z.string(), z.unknown()).optional() });

/** Executes a query by GitHub's schema. Throws if it does not match the schema. */
export async function answerGraphql(request: DoubleRequest, repositories: HostedRepositories, behavior: GraphqlBehavior): Promise<DoubleResponse> {
  const { query, variables = {} } = Body.parse(JSON.parse(request.body));
  const document = parse(query);
  const mistakes = validate(githubSchema(), document);
  if (mistakes.length > 0) throw new Error(`the query is none of GitHub's: ${mistakes[0]?.message}`);
  refuseStrayVariables(document, variables);
  if (isHeavy(document, behavior)) return givenUp(behavior);
  const result = await execute({ schema: githubSchema(), document, variableValues: variables, rootValue: rootOf(repositories, behavior) });
  const errors = result.errors?.map(formatted);
  return { status: 200, body: { data: result.data ?? null, ...(errors === undefined ? {} : { errors }) } };
}

function refuseStrayVariables(document: DocumentNode, variables: Readonly<Record<string, unknown>>): void {
  const declared = new Set<string>();
  visit(document, { VariableDefinition: ({ variable }) => void declared.add(variable.name.value) });
  const stray = Object.keys(variables).find((name) => !declared.has(name));
  if (stray !== undefined) throw new Error(`the query declares no variable ${stray}`);
}

function isHeavy(document: DocumentNode, { maxHistories, servesTrees }: GraphqlBehavior): boolean {
  const asked = { history: 0, entries: 0 };
  visit(document, {
    Field({ name: { value } }) {
      if (value === 'history' || value === 'entries') asked[value] += 1;
    },
  });
  return (maxHistories !== null && asked.history > maxHistories) || (!servesTrees && asked.entries > 0);
}

function givenUp({ failsWith }: GraphqlBehavior): DoubleResponse {
  const message = 'Something went wrong while executing your query. This may be the result of a timeout, or it could be a GitHub bug.';
  if (failsWith === 'status') return { status: 502, body: { data: null, errors: [{ message }] } };
  if (failsWith === 'error') return { status: 200, body: { data: null, errors: [{ message }] } };
  return { status: 200, body: { data: null, errors: [{ type: 'RESOURCE_LIMITS_EXCEEDED', message: 'Resource limits for this query exceeded.' }] } };
}

/** GitHub has an error's type beside its message. */
function formatted({ message, path, extensions }: GraphQLError) {
  const { type } = extensions;
  return { ...(type === undefined ? {} : { type }), message, ...(path === undefined ? {} : { path }) };
}
