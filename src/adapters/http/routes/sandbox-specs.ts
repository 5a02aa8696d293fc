import { operation, plain } from '../operation.ts';
import { decodePageId, unknownPage } from '../request/page-id.ts';
import { pagePresenter } from '../response/page.ts';
import { presentSandboxSpec, sandboxSpecPage, sandboxSpecSearchQuery } from '../schema/sandbox-spec.ts';

const presentPage = pagePresenter(presentSandboxSpec);
const listing = 'sandbox-specs';

export const sandboxSpecOperations = [
  operation({
    ...plain,
    method: 'get',
    path: '/api/v1/sandbox-specs/search',
    operationId: 'search_sandbox_specs',
    tag: 'Sandbox specs',
    summary: 'List sandbox specs',
    description: "In the deployment's order; the first one is the default.",
    needsKey: true,
    query: sandboxSpecSearchQuery,
    success: { status: 200, description: 'A page of sandbox specs.', schema: sandboxSpecPage },
    failures: [],
    handle: async ({ skep }, { query }) => {
      const after = query.page_id === undefined ? null : decodePageId(listing, query.page_id);
      if (after !== null && skep.specs.find(after.id) === undefined) throw unknownPage();
      const page = await skep.specs.search(after?.id ?? null, query.limit);
      return { value: presentPage(page, listing) };
    },
  }),
];
