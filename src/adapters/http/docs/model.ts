import { z } from 'zod';

/** A schema of the document, as far as it is shown. */
export const Schema = z.object({
  $ref: z.string().optional(),
  type: z.union([z.string(), z.array(z.string())]).optional(),
  format: z.string().optional(),
  description: z.string().optional(),
  enum: z.array(z.unknown()).optional(),
  const: z.unknown().optional(),
  default: z.unknown().optional(),
  example: z.unknown().optional(),
  pattern: z.string().optional(),
  minimum: z.number().optional(),
  maximum: z.number().optional(),
  minLength: z.number().optional(),
  maxLength: z.number().optional(),
  minItems: z.number().optional(),
  maxItems: z.number().optional(),
  required: z.array(z.string()).optional(),
  get properties() {
    return z.record(z.string(), Schema).optional();
  },
  get items() {
    return Schema.optional();
  },
  get anyOf() {
    return z.array(Schema).optional();
  },
  get additionalProperties() {
    return z.union([z.boolean(), Schema]).optional();
  },
});
export type Schema = z.output<typeof Schema>;

const Media = z.object({
  schema: Schema.optional(),
  example: z.unknown().optional(),
  examples: z.record(z.string(), z.object({ value: z.unknown() })).optional(),
});

export type Media = z.output<typeof Media>;

const Parameter = z.object({
  name: z.string(),
  in: z.string(),
  required: z.boolean().optional(),
  description: z.string().optional(),
  schema: Schema,
});
export type Parameter = z.output<typeof Parameter>;

const Response = z.object({
  description: z.string(),
  headers: z.record(z.string(), z.object({ description: z.string().optional() })).optional(),
  content: z.record(z.string(), Media).optional(),
});
export type Response = z.output<typeof Response>;

const Operation = z.object({
  operationId: z.string(),
  tags: z.array(z.string()),
  summary: z.string(),
  description: z.string().optional(),
  security: z.array(z.unknown()),
  parameters: z.array(Parameter).optional(),
  requestBody: z.object({ required: z.boolean().optional(), content: z.record(z.string(), Media) }).optional(),
  responses: z.record(z.string(), Response),
});
export type Operation = z.output<typeof Operation>;

/** The OpenAPI document, as far as it is shown. */
export const Model = z.object({
  info: z.object({ title: z.string(), version: z.string(), description: z.string() }),
  servers: z.array(z.object({ url: z.string(), description: z.string() })),
  tags: z.array(z.object({ name: z.string(), description: z.string() })),
  paths: z.record(z.string(), z.record(z.string(), Operation)),
  components: z.object({ schemas: z.record(z.string(), Schema) }),
});
export type Model = z.output<typeof Model>;
